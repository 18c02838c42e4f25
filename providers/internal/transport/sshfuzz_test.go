package transport_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/sshtest"
)

// Arguments, variables, input, names of files and their content come through as they are, whatever is in them, and nothing of them is executed: a folder on the path has programs
// that would leave a trace, and so would a redirection.
func FuzzNothingIsExecuted(f *testing.F) {
	for _, s := range []string{"", "a", "'", `"`, "$(touch pwned)", "`touch pwned`", ";touch pwned;", "\n touch pwned\n", "|touch pwned", ">pwned", "&& touch pwned", "-n", "--help", "\\", "\\n", "%s", "%b", "~", "*", "é", "\xff", "!", "a=b", "'\\''", "$IFS", "\r", "\x01"} {
		f.Add(s, "x"+s, []byte(s))
	}
	s, err := sshtest.Start(f.TempDir(), nil, sshtest.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	far := client(f, s, nil)
	f.Fuzz(func(t *testing.T, a, b string, data []byte) {
		if strings.ContainsRune(a+b, 0) || len(a)+len(b) > 10000 {
			return
		}
		for where, c := range map[string]providers.Conn{"here": transport.NewLocal("here"), "by SSH": far} {
			dir := t.TempDir()
			check := func(what string, got, want string, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Errorf("%s, %s: %q came out as %q, %v", where, what, want, got, err)
				}
			}
			res, err := c.Run(t.Context(), providers.Cmd{Args: []string{"sh", "-c", `cd "$1" && printf '%s\001' "$2" "$3" "$PLUMB_A" "$PLUMB_B"; cat`, "sh", dir, a, b}, Env: []string{"PLUMB_A=" + b, "PLUMB_B=" + a}, Stdin: data})
			check("run", string(res.Stdout), strings.Join([]string{a, b, b, a, ""}, "\x01")+string(data), err)
			name := strings.NewReplacer("/", "_").Replace(a)
			if name == "" || name == "." || name == ".." || len(name) > 200 || name == "pwned" {
				name = "f"
			}
			if err := c.WriteFile(t.Context(), dir+"/"+name, data, 0o600); err != nil {
				t.Errorf("%s, write %q: %v", where, name, err)
			}
			if here, err := os.ReadFile(dir + "/" + name); err != nil || !bytes.Equal(here, data) {
				t.Errorf("%s: %q holds %q, %v", where, name, here, err)
			}
			escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir + "/" + name)
			m, err := c.ReadFiles(t.Context(), escaped)
			check("read", string(m[dir+"/"+name]), string(data), err)
			if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
				t.Errorf("%s: the folder holds %v, %v", where, names, err)
			}
		}
		for _, trace := range []string{"/pwned", "pwned"} {
			if _, err := os.Stat(trace); err == nil {
				t.Fatalf("%s was made", trace)
			}
		}
	})
}

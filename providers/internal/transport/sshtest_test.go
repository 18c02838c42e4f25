package transport_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/sshtest"
	"plumb/providers/internal/transport/transporttest"
)

// serve starts an SSH server in this process that stands for a machine; nil: this one, without root's rights where the test has none.
func serve(t testing.TB, machine providers.Conn, o sshtest.Options) *sshtest.Server {
	t.Helper()
	s, err := sshtest.Start(t.TempDir(), machine, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func configOf(s *sshtest.Server) transport.SSHConfig {
	return transport.SSHConfig{Address: "127.0.0.1", User: s.User, Port: s.Port, Key: s.Key, KnownHosts: []string{s.KnownHosts}, Config: "none"}
}

func client(t testing.TB, s *sshtest.Server, change func(*transport.SSHConfig)) *transport.SSH {
	t.Helper()
	c := configOf(s)
	if change != nil {
		change(&c)
	}
	conn := transport.NewSSH("dut", c, nil)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestSSH(t *testing.T) {
	for name, o := range map[string]sshtest.Options{
		"plain":               {},
		"without forwarding":  {NoForward: true},
		"few sessions":        {MaxSessions: 3, NoForward: true},
		"fewer than we think": {MaxSessions: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil, o)
			transporttest.Run(t, func(t *testing.T) transporttest.Host {
				return transporttest.Host{Conn: client(t, s, nil), Dir: t.TempDir(), Echo: echo(t), Real: true, Keep: transport.NewLocal("here")}
			})
		})
	}
}

func TestReadFilesSpellsPatternsAsPathMatch(t *testing.T) {
	dir := t.TempDir()
	names := []string{"a", "ab", ".a", ".", "..b", "[", "]", "*", "?", "!", "^", "-", "a b", "a'b", `a"b`, "a\nb", `a\b`, "$(id)", "~", "#a", "-n", "a]", "[a]", "a;b", "{a}", "a,b"}
	for _, n := range names {
		if n != "." {
			if err := os.WriteFile(dir+"/"+n, []byte(n), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, sub := range []string{"d1", ".d2", "d 3"} {
		if err := os.MkdirAll(dir+"/"+sub+"/deep", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+sub+"/f", []byte(sub), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	patterns := []string{"*", "?", "[a-z]", "[^a]", "[!a]", "[a^]", "[a!]", `\*`, `\[`, `\?`, `\\`, `a\\b`, `[\]]`, `[\-a]`, "*b", ".*", "?a", "[.]a", "[^x]a", "a*b", "*/f", "*/*", "*/deep", "?d2/f", "d*/f", "$(id)", "*(id)", "a ?",
		"a\n*", "*'*", `*"*`, "~*", "-*", "#*", "{a}", "{*}", "*,*", "[[]", "[[]a[]]", `\[a\]`, "a b", "a'b", "none*", "[0-9]*", "[a-]", `[a\-z]b`, "*;*", `[\[]`, `[*]`, `[?]`, "[$]*", "[ -~]"}
	s := client(t, serve(t, nil, sshtest.Options{}), nil)
	local := transport.NewLocal("here")
	for _, p := range patterns {
		want, wantErr := local.ReadFiles(t.Context(), dir+"/"+p)
		got, err := s.ReadFiles(t.Context(), dir+"/"+p)
		if (err == nil) != (wantErr == nil) || !maps.EqualFunc(got, want, func(a, b []byte) bool { return string(a) == string(b) }) {
			t.Errorf("%s: %q, %v; here it is %q, %v", p, slices.Sorted(maps.Keys(got)), err, slices.Sorted(maps.Keys(want)), wantErr)
		}
	}
}

// What cannot be read is told by name, whatever the names are, and names that begin alike are not mixed up.
func TestReadFilesTellsEachFile(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a", "ab", "it's", "c d"} {
		if err := os.Mkdir(dir+"/"+n, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"abc", "it"} {
		if err := os.WriteFile(dir+"/"+n, []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := client(t, serve(t, nil, sshtest.Options{}), nil)
	got, err := s.ReadFiles(t.Context(), dir+"/a", dir+"/ab", dir+"/abc", dir+"/it", dir+"/it's", dir+"/c d", dir+"/abc/below")
	if len(got) != 2 || string(got[dir+"/abc"]) != "abc" || string(got[dir+"/it"]) != "it" {
		t.Errorf("%q", got)
	}
	for _, n := range []string{"a", "ab", "it's", "c d"} {
		if err == nil || !strings.Contains(err.Error(), "read "+dir+"/"+n+": is a directory") {
			t.Errorf("%s is not in: %v", n, err)
		}
	}
}

func TestReadFilesOfThousandsOfNames(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i := range 3000 {
		name := filepath.Join(dir, fmt.Sprintf("%s'%d", strings.Repeat("n", 60), i))
		names = append(names, name)
		if i%10 == 0 {
			if err := os.WriteFile(name, []byte{byte(i), 0, byte(i >> 8)}, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := client(t, serve(t, nil, sshtest.Options{}), nil)
	got, err := s.ReadFiles(t.Context(), names...)
	if err != nil || len(got) != 300 {
		t.Fatalf("%d files, %v", len(got), err)
	}
	for i := 0; i < 3000; i += 10 {
		if string(got[names[i]]) != string([]byte{byte(i), 0, byte(i >> 8)}) {
			t.Fatalf("%d: %q", i, got[names[i]])
		}
	}
}

func TestSSHTellsOfLongLines(t *testing.T) {
	s := client(t, serve(t, nil, sshtest.Options{}), nil)
	_, err := s.Run(t.Context(), providers.Cmd{Args: []string{"true", strings.Repeat("x", 1<<17)}})
	if err == nil || !strings.Contains(err.Error(), "hosts take 131071 by SSH") {
		t.Fatal(err)
	}
	if err := s.WriteFile(t.Context(), t.TempDir()+"/none/x", nil, 0o644); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

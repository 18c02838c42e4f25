package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func TestFileArguments(t *testing.T) {
	for p, ok := range map[string]bool{"/etc/x": true, "/etc/-x": true, "/etc/a b": true, "/etc/$(id)": true, "etc/x": false, "/": false, "/etc/": false, "/etc/../x": false, "/proc/sys/vm/x": false,
		"/sys/x": false, "/dev/null": false, "/etc/*": false, "/etc/x\n": false, "/etc/\x00": false} {
		if err := validFile(str(p)); (err == nil) != ok {
			t.Errorf("%q: %v", p, err)
		}
	}
	for o, ok := range map[string]bool{"root": true, "0": true, "a-b.c": true, "-R": false, "": false, "a:b": false, "a b": false, "$(id)": false} {
		if err := validOwner(str(o)); (err == nil) != ok {
			t.Errorf("%q: %v", o, err)
		}
	}
	if v, err := canonicalMode(str("644")); err != nil || v.AsString() != "0644" {
		t.Error(v, err)
	}
	for _, bad := range []string{"rw", "08", "17777", "-644", ""} {
		if _, err := canonicalMode(str(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzStats(f *testing.F) {
	f.Add("81a4 0 0 root root 12 /etc/a b\n")
	f.Fuzz(func(t *testing.T, out string) {
		_, _ = parseStats(out)
	})
}

func fileCase(open func(*testing.T) providers.Host, name, owner string) conformance.Case {
	return conformance.Case{
		Type: File{}, Open: open,
		Config: attrs{"path": str(name), "content": str("# häß\n'\"$(id)`\n"), "mode": str("640"), "owner": str(owner)},
		Update: attrs{"path": str(name), "content_sensitive": str("secret"), "mode": str("0755"), "group": str("0")},
		Drift: map[string]func(*testing.T, providers.Host){
			"written": func(t *testing.T, h providers.Host) { put(t, h, name, "other") },
			"mode":    func(t *testing.T, h providers.Host) { do(t, h, "chmod", "--", "0777", name) },
			"owner":   func(t *testing.T, h providers.Host) { do(t, h, "chown", "--", "0:0", name) },
			"removed": func(t *testing.T, h providers.Host) { do(t, h, "rm", "-f", "--", name) },
		},
	}
}

func TestFile(t *testing.T) {
	for _, name := range []string{"/etc/new.conf", "/etc/made/on the way/-x", "/etc/there"} {
		w := newWorld(t)
		w.write(t, "/etc/there", "as it was\n")
		h := w.open(t)
		do(t, h, "chown", "--", "openvswitch:hugetlbfs", "/etc/there")
		do(t, h, "chmod", "--", "0600", "/etc/there")
		h.Close()
		c := fileCase(w.open, name, "openvswitch")
		c.Snapshot = w.snapshot
		conformance.Run(t, c)
	}
}

func TestRealFile(t *testing.T) {
	real(t)
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(there, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	snapshot := func(t *testing.T, h providers.Host) []string {
		lines := strings.Split(do(t, h, "find", dir, "-printf", "%P %y %m %u %g\n"), "\n")
		slices.Sort(lines)
		return append(lines, string(mustRead(t, h, there)))
	}
	for _, name := range []string{there, filepath.Join(dir, "-a b", "'c\"$(x)", "new")} {
		c := fileCase(local, name, "daemon")
		c.Snapshot = snapshot
		conformance.Run(t, c)
	}
}

func TestFileFromSource(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	source := filepath.Join(t.TempDir(), "source")
	given := attrs{"path": str("/etc/from.source"), "source": str(source)}
	wantProblem(t, planOf(t, File{}, h, given), "Source cannot be read", source)
	if err := os.WriteFile(source, []byte{0, 0xff}, 0o600); err != nil {
		t.Fatal(err)
	}
	req, err := create(t, File{}, h, given)
	if err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, h, "/etc/from.source"); string(got) != "\x00\xff" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(source, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = File{}.Apply(t.Context(), req)
	wantError(t, err, "changed since the plan")
}

func TestFileRefusals(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	at := func(name string) attrs { return attrs{"path": str(name), "content": str("x")} }
	wantProblem(t, planOf(t, File{}, h, at("/var/run")), "symbolic link")
	wantProblem(t, planOf(t, File{}, h, at("/etc/openvswitch")), "no regular file")
	w.write(t, "/etc/large", strings.Repeat("x", keepLimit+1))
	wantProblem(t, planOf(t, File{}, h, at("/etc/large")), "1048577 bytes")
	wantProblem(t, planOf(t, File{}, h, attrs{"path": str("/etc/x")}), "Exactly one")
	wantProblem(t, planOf(t, File{}, h, attrs{"path": str("/etc/x"), "content": str(""), "source": str("a")}), "Exactly one", "2")
	if res := planOf(t, File{}, h, attrs{"path": str("/etc/x"), "content": cty.UnknownVal(cty.String)}); res.Planned.GetAttr("sha256").IsKnown() || len(res.Problems) > 0 {
		t.Errorf("%#v", res)
	}
}

// Two files in a folder that was made for one of them: it goes with the last, in any order.
func TestFilesInOneFolder(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		w := newWorld(t)
		before := w.snapshot(t, nil)
		h := w.open(t)
		var reqs []providers.ApplyRequest
		for _, name := range []string{"/etc/made/a", "/etc/made/b"} {
			req, err := create(t, File{}, h, attrs{"path": str(name), "content": str(name)})
			if err != nil {
				t.Fatal(err)
			}
			req.Prior, req.Planned = req.Planned, cty.NullVal(req.Planned.Type())
			reqs = append(reqs, req)
		}
		for _, i := range order {
			if _, err := (File{}).Apply(t.Context(), reqs[i]); err != nil {
				t.Fatal(err)
			}
		}
		h.Close()
		if after := w.snapshot(t, nil); !slices.Equal(before, after) {
			t.Errorf("%v: something is left", order)
		}
	}
}

package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func TestMountinfo(t *testing.T) {
	const text = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
40 22 0:35 / /mnt/a\040b\134c rw,noexec - tmpfs none\011x rw,size=1024k
broken
41 22 0:36 / /mnt/a\040b\134c ro shared:2 master:1 - nfs4 h:/x rw
`
	want := []mounted{
		{"/dev/vda1", "/", "ext4", []string{"rw", "relatime", "rw", "errors=remount-ro"}},
		{"none\tx", `/mnt/a b\c`, "tmpfs", []string{"rw", "noexec", "rw", "size=1024k"}},
		{"h:/x", `/mnt/a b\c`, "nfs4", []string{"ro", "rw"}},
	}
	got := parseMountinfo(text)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mounted{})); diff != "" {
		t.Error(diff)
	}
	if m, ok := (&mounts{all: got}).at(`/mnt/a b\c`); !ok || m.typ != "nfs4" {
		t.Error(m, ok)
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add(`22 1 254:1 / /a\040 rw - ext4 /dev/vda1 rw`, "a b\\")
	f.Fuzz(func(t *testing.T, text, field string) {
		parseMountinfo(text)
		if !strings.ContainsAny(field, "\n") && unescape(escape(field)) != field {
			t.Errorf("%q is %q, which is %q", field, escape(field), unescape(escape(field)))
		}
		if strings.ContainsAny(escape(field), " \t#") {
			t.Errorf("%q is two fields", escape(field))
		}
	})
}

func TestMountOptions(t *testing.T) {
	have := []string{"rw", "nosuid", "relatime", "rw", "size=1024k", "mode=755"}
	for o, wrong := range map[string]string{"size=1m": "-", "size=2m": "size=1024k", "mode=0755": "-", "mode=700": "mode=755", "noexec": "", "suid": "nosuid", "ro": "rw", "nosuid": "-", "nr_inodes=4": "-", "size=50%": "-", "discard": "-", "exec": "-"} {
		got := wantedMount{mounted: mounted{options: []string{o}}}.differs(have)
		if is, differs := got[o]; differs != (wrong != "-") || differs && is != wrong {
			t.Errorf("%s: %v", o, got)
		}
	}
	if got := revert([]string{"noexec", "nosuid", "size=2m", "ro", "nr_inodes=1", "suid"}, have); !slices.Equal(got, []string{"exec", "size=1024k", "rw", "nosuid"}) {
		t.Error(got)
	}
}

func mountCase(open func(*testing.T) providers.Host, target string) conformance.Case {
	return conformance.Case{
		Type: Mount{}, Open: open,
		Config: attrs{"target": str(target), "source": str("plumb test"), "type": str("tmpfs"), "options": strs("size=1m", "noexec", "nodev"), "persistent": cty.True},
		Update: attrs{"target": str(target), "source": str("plumb test"), "type": str("tmpfs"), "options": strs("size=2m", "nosuid")},
		Drift: map[string]func(*testing.T, providers.Host){
			"unmounted": func(t *testing.T, h providers.Host) { do(t, h, "umount", "--", target) },
			"remounted": func(t *testing.T, h providers.Host) { do(t, h, "mount", "-o", "remount,exec,size=3m", "--", target) },
			"forgotten": func(t *testing.T, h providers.Host) {
				put(t, h, fstab, strings.ReplaceAll(string(mustRead(t, h, fstab)), "/"+filepath.Base(strings.ReplaceAll(target, " ", `\040`)), "/elsewhere"))
			},
		},
	}
}

func TestMount(t *testing.T) {
	for _, target := range []string{"/mnt/new/a b", "/etc/sysctl.d"} {
		w := newWorld(t)
		c := mountCase(w.open, target)
		delete(c.Drift, "forgotten") // a line that is somebody's by now stays
		c.Snapshot = w.snapshot
		conformance.Run(t, c)
	}
}

// What was mounted before stays, with its options.
func TestMountThatWasThere(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	do(t, h, "mkdir", "-p", "--", "/mnt/x")
	do(t, h, "mount", "-t", "tmpfs", "-o", "size=4m,nosuid", "--", "plumb test", "/mnt/x")
	h.Close()
	c := mountCase(w.open, "/mnt/x")
	c.Drift = map[string]func(*testing.T, providers.Host){"remounted": c.Drift["remounted"]}
	c.Snapshot = func(t *testing.T, h providers.Host) []string {
		lines := w.snapshot(t, h)
		for i := range lines { // the order of options says nothing
			if strings.HasPrefix(lines[i], "/proc/mounts ") {
				words := strings.FieldsFunc(lines[i], func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
				slices.Sort(words)
				lines[i] = strings.Join(words, " ")
			}
		}
		return lines
	}
	conformance.Run(t, c)
}

func TestMountRefusals(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	wantProblem(t, planOf(t, Mount{}, h, attrs{"target": str("/sys"), "source": str("x"), "type": str("tmpfs")}), "/sys is sysfs (sysfs)")
	_, err := create(t, Mount{}, h, attrs{"target": str("/mnt/x"), "source": str("x"), "type": str("nosuchfs")})
	wantError(t, err, "nosuchfs")
	for p, ok := range map[string]bool{"/mnt": true, "/": false, "/var": false, "/mnt/": false, "x": false, "/a\n": false} {
		if err := validTarget(str(p)); (err == nil) != ok {
			t.Errorf("%q: %v", p, err)
		}
	}
	for o, ok := range map[string]bool{"size=1g": true, "a,b": false, "remount": false, "": false, "a b": false, "x\n": false} {
		if err := validOption(str(o)); (err == nil) != ok {
			t.Errorf("%q: %v", o, err)
		}
	}
	for s, ok := range map[string]bool{"tmpfs": true, "UUID=1": true, "h:/a b": true, "-o": false, "": false, "#x": false, "x\ny": false} {
		if err := validSource(str(s)); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestRealMount(t *testing.T) {
	real(t)
	dir := t.TempDir()
	target := filepath.Join(dir, "new", "a b")
	c := mountCase(local, target)
	delete(c.Drift, "forgotten")
	c.Snapshot = func(t *testing.T, h providers.Host) []string {
		_, err := os.Stat(filepath.Join(dir, "new"))
		return []string{string(mustRead(t, h, mountInfo)), string(mustRead(t, h, fstab)), map[bool]string{true: "", false: "the folder is there"}[os.IsNotExist(err)]}
	}
	conformance.Run(t, c)
}

// A mount that somebody uses is not unmounted, and the error says who.
func TestRealMountInUse(t *testing.T) {
	real(t)
	target := filepath.Join(t.TempDir(), "used")
	h := local(t)
	defer h.Close()
	req, err := create(t, Mount{}, h, attrs{"target": str(target), "source": str("tmpfs"), "type": str("tmpfs")})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(target, "open"))
	if err != nil {
		t.Fatal(err)
	}
	req.Prior, req.Planned = req.Planned, cty.NullVal(req.Planned.Type())
	_, err = Mount{}.Apply(t.Context(), req)
	wantError(t, err, "busy", "It is used by settings.test (process")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := (Mount{}).Apply(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

package settings

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/host"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

type attrs = map[string]cty.Value

func str(s string) cty.Value     { return cty.StringVal(s) }
func num(n int64) cty.Value      { return cty.NumberIntVal(n) }
func strs(s ...string) cty.Value { return textList(s) }

func testMark(typ providers.Resource) providers.Mark {
	return providers.Mark{Testbed: "conformance", Address: typ.Schema().Type + ".test"}
}

// world is a fake host that is opened as often as a case asks.
type world struct {
	dir string
}

func newWorld(t *testing.T) *world {
	w := &world{t.TempDir()}
	w.conn(t)
	w.write(t, "/proc/1/comm", "systemd\n")
	return w
}

func (w *world) conn(t *testing.T) *fake.Conn {
	t.Helper()
	c, err := fake.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) open(t *testing.T) providers.Host { return hostkit.New("fake", w.conn(t), host.Gather) }

// openWith opens it with given facts.
func (w *world) openWith(t *testing.T, f *providers.Facts) providers.Host {
	return hostkit.New("fake", w.conn(t), func(context.Context, providers.Conn) (*providers.Facts, error) { return f, nil })
}

// write changes a file of the fake host without asking its kernel.
func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(w.dir, "root", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// snapshot is every file of the fake host, and what else it keeps.
func (w *world) snapshot(t *testing.T, _ providers.Host) []string {
	t.Helper()
	var lines []string
	root := filepath.Join(w.dir, "root")
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(name, root) + " " + fi.Mode().String()
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line += ": " + string(b)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := w.conn(t).SettingsState()
	if err != nil {
		t.Fatal(err)
	}
	return append(lines, state...)
}

func local(*testing.T) providers.Host {
	return hostkit.New("local", transport.NewLocal("local"), host.Gather)
}

// real skips where this machine is not to be touched.
func real(t *testing.T) {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the real tests need root")
	}
}

// do runs a command of a host.
func do(t *testing.T, h providers.Host, args ...string) string {
	t.Helper()
	res, err := h.Conn().Run(t.Context(), providers.Cmd{Args: args})
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return string(res.Stdout)
}

func put(t *testing.T, h providers.Host, name, text string) {
	t.Helper()
	if err := h.Conn().WriteFile(t.Context(), name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, h providers.Host, name string) []byte {
	t.Helper()
	got, err := h.Conn().ReadFiles(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return got[name]
}

// files is a snapshot of some files of any host.
func files(patterns ...string) func(*testing.T, providers.Host) []string {
	return func(t *testing.T, h providers.Host) []string {
		t.Helper()
		found, err := h.Conn().ReadFiles(t.Context(), patterns...)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for name, b := range found {
			lines = append(lines, name+": "+string(b))
		}
		slices.Sort(lines)
		return lines
	}
}

// planOf is a plan to create.
func planOf(t *testing.T, typ providers.Resource, h providers.Host, given attrs) providers.PlanResult {
	t.Helper()
	want := conformance.Desired(&typ.Schema().Block, given)
	res, err := typ.(providers.Planner).Plan(t.Context(), providers.PlanRequest{Host: h, Mark: testMark(typ), Prior: cty.NullVal(want.Type()), Desired: want, Proposed: want})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// wantProblem expects a plan to refuse, with words in its text.
func wantProblem(t *testing.T, res providers.PlanResult, words ...string) {
	t.Helper()
	var all []string
	for _, p := range res.Problems {
		text := p.Summary + ": " + p.Detail
		all = append(all, text)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			t.Log(text)
			return
		}
	}
	t.Errorf("no problem with %q among %q", words, all)
}

// create prepares and applies, and returns the error of Apply with what was recorded.
func create(t *testing.T, typ providers.Resource, h providers.Host, given attrs) (providers.ApplyRequest, error) {
	t.Helper()
	want := conformance.Desired(&typ.Schema().Block, given)
	if p, ok := typ.(providers.Planner); ok {
		res, err := p.Plan(t.Context(), providers.PlanRequest{Host: h, Mark: testMark(typ), Prior: cty.NullVal(want.Type()), Desired: want, Proposed: want})
		if err != nil {
			t.Fatal(err)
		}
		want = res.Planned
	}
	req := providers.ApplyRequest{Host: h, Mark: testMark(typ), Prior: cty.NullVal(want.Type()), Planned: want, Log: func(s string) { t.Log(s) }}
	if p, ok := typ.(providers.Preparer); ok {
		undo, err := p.Prepare(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		req.Undo = undo
	}
	_, err := typ.Apply(t.Context(), req)
	return req, err
}

// wantError expects words in an error.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing in: %v", w, err)
		}
	}
	t.Log(err)
}

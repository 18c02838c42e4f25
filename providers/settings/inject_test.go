package settings

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

// recorder notes the commands that a fake host is asked for.
type recorder struct {
	providers.Conn
	mu   sync.Mutex
	cmds []providers.Cmd
}

func (r *recorder) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	r.mu.Lock()
	r.cmds = append(r.cmds, cmd)
	r.mu.Unlock()
	return r.Conn.Run(ctx, cmd)
}

// seat is a place in a configuration that takes a text.
type seat struct {
	typ   providers.Resource
	name  string
	base  attrs
	put   func(value string) cty.Value
	check *schema.Attribute
}

// seats are all attributes of all types that take texts.
func seats() []seat {
	base := map[string]attrs{
		"host_sysctl":       {"key": str("vm.swappiness"), "value": str("1"), "persistent": cty.True},
		"host_module":       {"name": str("vfio-pci"), "at_boot": cty.True},
		"host_service":      {"name": str("chrony")},
		"host_file":         {"path": str("/etc/x/y"), "content": str("x")},
		"host_package":      {"names": strs("tuned")},
		"host_mount":        {"target": str("/mnt/x"), "source": str("x"), "type": str("tmpfs"), "persistent": cty.True},
		"host_irq_affinity": {"device": str("0000:01:00.0"), "cpus": str("0")},
		"host_cpu_power":    {"governor": str("performance")},
		"host_command":      {"do": strs("true"), "undo": strs("true")},
	}
	var out []seat
	for _, typ := range Resources() {
		s := typ.Schema()
		for name, a := range s.Block.Attributes {
			at := seat{typ: typ, name: name, base: base[s.Type], check: a}
			switch {
			case a.Computed && !a.Optional, len(a.OneOf) > 0, name == "source" && s.Type == "host_file": // a file of this machine
				continue
			case a.Type == cty.String:
				at.put = str
			case a.Type == cty.List(cty.String):
				at.put = func(v string) cty.Value { return strs("true", v) } // the second argument of a command
			case a.Type == cty.Map(cty.String):
				at.put = func(v string) cty.Value { return cty.MapVal(attrs{"x": str(v)}) }
			default:
				continue
			}
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b seat) int { return strings.Compare(a.label(), b.label()) })
	return out
}

func (s seat) label() string { return s.typ.Schema().Type + "." + s.name }

// allowed says whether the schema takes a value.
func (s seat) allowed(v cty.Value) bool {
	if s.check.Validate != nil && s.check.Validate(v) != nil {
		return false
	}
	if s.check.Canonical != nil {
		if _, err := s.check.Canonical(v); err != nil {
			return false
		}
	}
	return true
}

// hostileWorld is a fake host on which all types find something.
func hostileWorld(t *testing.T) *world {
	t.Helper()
	w := irqWorld(t)
	for file, text := range map[string]string{governor: "powersave", "cpufreq/scaling_available_governors": "performance powersave"} {
		for id := range 8 {
			w.write(t, cpuFile(id, file), text+"\n")
		}
	}
	return w
}

// try takes a value through the life of an instance on a fake host, and returns the commands. Errors are the host's good right.
func (s seat) try(t *testing.T, w *world, value string) (cmds []providers.Cmd, refused bool) {
	t.Helper()
	v := s.put(value)
	if !s.allowed(v) {
		return nil, true
	}
	conn := w.conn(t)
	rec := &recorder{Conn: conn}
	h := hostkit.New("fake", rec, func(context.Context, providers.Conn) (*providers.Facts, error) {
		return &providers.Facts{Root: true, Systemd: true, Kernel: "6.1.0-13-amd64", CPUs: []providers.CPU{{ID: 0, Online: true}}}, nil
	})
	defer h.Close()
	given := maps.Clone(s.base)
	given[s.name] = v
	if s.label() == "host_file.content_sensitive" {
		delete(given, "content")
	}
	if s.label() == "host_command.check" || s.label() == "host_command.creates" {
		delete(given, "undo")
	}
	want := conformance.Desired(&s.typ.Schema().Block, given)
	null := cty.NullVal(want.Type())
	if p, ok := s.typ.(providers.Planner); ok {
		if res, err := p.Plan(t.Context(), providers.PlanRequest{Host: h, Mark: testMark(s.typ), Prior: null, Desired: want, Proposed: want}); err == nil {
			want = res.Planned
		}
	}
	req := providers.ApplyRequest{Host: h, Mark: testMark(s.typ), Prior: null, Planned: want, Log: func(string) {}}
	if undo, err := s.typ.(providers.Preparer).Prepare(t.Context(), req); err == nil {
		req.Undo = undo
		_, _ = s.typ.Apply(t.Context(), req)
		known, err := cty.Transform(want, func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if !v.IsKnown() {
				return cty.NullVal(v.Type()), nil
			}
			return v, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.typ.Read(t.Context(), providers.ReadRequest{Host: h, Mark: testMark(s.typ), Prior: known})
		req.Prior, req.Planned = known, null
		_, _ = s.typ.Apply(t.Context(), req)
	}
	if unknown := conn.Unknown(); len(unknown) > 0 && s.typ.Schema().Type != "host_command" {
		t.Errorf("%s = %q: the fake host does not know %q", s.label(), value, unknown)
	}
	return rec.cmds, false
}

// ownScript says that a script is one of ours, in which no value can be.
func ownScript(script string) bool { return script == aptScript }

// wantData checks that a value is in no script, and never where a command would take it for an option.
func wantData(t *testing.T, s seat, value string, cmds []providers.Cmd) {
	t.Helper()
	for _, c := range cmds {
		if c.Args[0] == "sh" && !ownScript(c.Args[2]) {
			t.Errorf("%s = %q is in a script: %q", s.label(), value, c.Args)
		}
		if s.typ.Schema().Type == "host_command" && c.Args[0] == "true" {
			continue // the user's own arguments
		}
		dashes := slices.Index(c.Args, "--")
		for i, a := range c.Args {
			asOption := strings.HasPrefix(a, "-") && a == value && (dashes < 0 || i < dashes)
			if asOption && (i == 0 || !slices.Contains([]string{"-o", "-t"}, c.Args[i-1])) {
				t.Errorf("%s = %q is taken for an option: %q", s.label(), value, c.Args)
			}
		}
	}
}

// inLocalShell runs the commands on this machine with programs that do nothing in place of the real ones: only a shell that took data for code could do
// anything.
func inLocalShell(t *testing.T, cmds []providers.Cmd) {
	t.Helper()
	bin := t.TempDir()
	conn := transport.NewLocal("local")
	for _, c := range cmds {
		name := filepath.Base(c.Args[0])
		if slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, "\x00") }) {
			t.Errorf("a NUL byte got through: %q", c.Args)
			continue
		}
		text := "#!/bin/sh\nexit 0\n"
		if name == "sh" { // what is ours runs what it is given
			text = "#!/bin/sh\nshift 3\n[ $# -eq 0 ] || exec \"$@\"\n"
		}
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		c.Args = append([]string{"/bin/sh", "-c", `PATH=$1; export PATH; shift; exec "$@"`, "x", bin}, c.Args...)
		_, _ = conn.Run(t.Context(), c) // a program that does not exist here is none of this test's business
	}
}

func hostile(canary string) []string {
	touch := "touch " + canary
	return []string{"$(" + touch + ")", "`" + touch + "`", "; " + touch + ";", "'; " + touch + "; '", `"; ` + touch + `; "`, "x\n" + touch + "\n", "| " + touch, "&& " + touch, "$(touch${IFS}" + canary + ")",
		"-x", "--help", "--eval=" + touch, "--", "-", "a\x00b", " ", "", "a b", "*", "~", "\\", "%s%n", "../../x", "/etc/$(" + "touch" + "${IFS}x)/-y", "é\xff", "/etc/-rf", "key=$(" + touch + ")"}
}

func TestNothingIsExecuted(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "canary")
	taken := map[string]int{}
	for _, s := range seats() {
		w := hostileWorld(t)
		for _, v := range hostile(canary) {
			cmds, refused := s.try(t, w, v)
			if !refused {
				taken[s.label()]++
			}
			wantData(t, s, v, cmds)
			inLocalShell(t, slices.DeleteFunc(cmds, func(c providers.Cmd) bool {
				return !strings.Contains(strings.Join(c.Args, "\n"), v) || strings.TrimSpace(v) == ""
			}))
		}
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a value was executed")
	}
	t.Log("values that the schemas take: " + fmt.Sprint(taken))
	if len(taken) < 10 || taken["host_command.do"] < 10 {
		t.Error("nearly everything was refused: the test says nothing")
	}
}

func FuzzNothingIsExecuted(f *testing.F) {
	all := seats()
	for i := 0; i < len(all); i += 8 { // the test above has all of them
		f.Add(uint(i), "-x$(touch x)")
	}
	f.Fuzz(func(t *testing.T, i uint, value string) {
		s := all[i%uint(len(all))]
		cmds, _ := s.try(t, hostileWorld(t), value)
		wantData(t, s, value, cmds)
	})
}

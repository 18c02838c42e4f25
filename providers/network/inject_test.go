package network

import (
	"context"
	"fmt"
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
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

// recorder notes the commands that a host is asked for.
type recorder struct {
	providers.Conn
	mu   sync.Mutex
	cmds [][]string
}

func (r *recorder) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	r.mu.Lock()
	r.cmds = append(r.cmds, cmd.Args)
	r.mu.Unlock()
	return r.Conn.Run(ctx, cmd)
}

// seat is a place in a configuration that takes a text.
type seat struct {
	typ   providers.Resource
	name  string
	check *schema.Attribute
	put   func(string) cty.Value
}

func (s seat) String() string { return s.typ.Schema().Type + "." + s.name }

// seats are all attributes of all types that take texts.
func seats() []seat {
	var out []seat
	for _, typ := range Resources() {
		for name, a := range typ.Schema().Block.Attributes {
			at := seat{typ: typ, name: name, check: a}
			switch {
			case a.Computed && !a.Optional:
				continue
			case a.Type == cty.String:
				at.put = str
			case a.Type == cty.List(cty.String):
				at.put = func(v string) cty.Value { return strs(v) }
			case a.Type == cty.Map(cty.String): // neighbours: a key is a text too
				at.put = func(v string) cty.Value { return cty.MapVal(attrs{v: str("02:00:00:00:00:01")}) }
				out = append(out, seat{typ: typ, name: name, check: a, put: func(v string) cty.Value { return cty.MapVal(attrs{"192.0.2.1": str(v)}) }})
			case a.Type == cty.Map(cty.Bool):
				at.put = func(v string) cty.Value { return cty.MapVal(attrs{v: cty.False}) }
			default:
				continue
			}
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b seat) int { return strings.Compare(a.String(), b.String()) })
	return out
}

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

// base is a configuration of the seat's type.
func (s seat) base() attrs {
	return map[string]attrs{
		"net_namespace": {"name": str("plt-net-c")},
		"net_veth":      {"name": str("v0"), "namespace": str("plt-net-a"), "peer_name": str("v1"), "peer_namespace": str("plt-net-b")},
		"net_tap":       {"name": str("t0"), "namespace": str("plt-net-a")},
		"net_bridge":    {"name": str("br0"), "namespace": str("plt-net-a")},
		"net_route":     {"destination": str("203.0.113.0/24"), "namespace": str("plt-net-a"), "via": str("198.51.100.2")},
		"nic_link":      {"interface": str("r0"), "namespace": str("plt-net-a")},
	}[s.typ.Schema().Type]
}

// try takes a value through the life of an instance, whatever the schema says of it, with a mark that is as hostile. Errors are the host's good right.
func (s seat) try(t *testing.T, conn providers.Conn, value string) [][]string {
	t.Helper()
	rec := &recorder{Conn: conn}
	h := hostkit.New("dut", rec, facts)
	defer h.Close()
	want := conformance.Desired(&s.typ.Schema().Block, with(s.base(), attrs{s.name: s.put(value)}))
	null := cty.NullVal(want.Type())
	mark := providers.Mark{Testbed: "t", Address: fmt.Sprintf("%s.x[%q]", s.typ.Schema().Type, value)}
	if p, ok := s.typ.(providers.Planner); ok {
		if res, err := p.Plan(t.Context(), providers.PlanRequest{Host: h, Mark: mark, Prior: null, Desired: want, Proposed: want}); err == nil {
			want = res.Planned
		}
	}
	req := providers.ApplyRequest{Host: h, Mark: mark, Prior: null, Planned: want, Log: func(string) {}}
	if p, ok := s.typ.(providers.Preparer); ok {
		undo, err := p.Prepare(t.Context(), req)
		if err != nil {
			return rec.cmds
		}
		req.Undo = undo
	}
	_, _ = s.typ.Apply(t.Context(), req)
	req.Prior, req.Planned = knownOnly(want), null
	_, _ = s.typ.Apply(t.Context(), req)
	return rec.cmds
}

// hostile are values that try to break out.
func hostile(canary string) []string {
	return []string{"x; touch " + canary, "$(touch " + canary + ")", "`touch " + canary + "`", "x\nlink del dev r0", "x\ntouch " + canary, "' ; touch " + canary + " ; '", "\" ; touch " + canary + " ; \"", "-batch", "--help", "-n", "x\x00y",
		"* ?", "../../etc", "x#y", "", " ", "a b", "é", strings.Repeat("x", 300)}
}

// checkCommands holds that no script has data in it, and that each word of data is one of a harmless kind.
func checkCommands(t *testing.T, s seat, value string, cmds [][]string) {
	t.Helper()
	for _, args := range cmds {
		if args[0] != "sh" {
			if !slices.Equal(args[:3], []string{"ip", "netns", "pids"}) || len(args) != 4 || spaceName(str(args[3])) != nil {
				t.Errorf("%s = %q: %q", s, value, args)
			}
			continue
		}
		if len(args) < 4 || args[1] != "-c" || args[2] != lookScript && args[2] != changeScript && args[2] != driverScript {
			t.Errorf("%s = %q: not a script of ours: %q", s, value, args)
			continue
		}
		for _, a := range args[4:] {
			if strings.Trim(a, alphanumeric+"_.:/%[],@+=- \n") != "" || strings.HasPrefix(a, "-") && args[2] != changeScript {
				t.Errorf("%s = %q: %q", s, value, a)
			}
		}
	}
}

func TestNothingIsExecutedOnFakeHost(t *testing.T) {
	c, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	shell(t, c, routed...)
	for _, s := range seats() {
		for _, v := range hostile("/tmp/canary") {
			if s.allowed(s.put(v)) && v != "x#y" && v != "" { // the schema has to refuse all that is not a name or an address
				t.Errorf("%s takes %q", s, v)
			}
			checkCommands(t, s, v, s.try(t, c, v))
		}
	}
	if u := c.Unknown(); len(u) > 0 {
		t.Errorf("unknown commands: %q", u)
	}
}

func TestRealNothingIsExecuted(t *testing.T) {
	p := realPlace(t, routed...)
	canary := filepath.Join(t.TempDir(), "canary")
	before := snapshot(t, p.open(t))
	for _, s := range seats() {
		for _, v := range hostile(canary)[:9] {
			checkCommands(t, s, v, s.try(t, transport.NewLocal("dut"), v))
			if _, err := os.Stat(canary); err == nil {
				t.Fatalf("%s = %q was executed", s, v)
			}
		}
	}
	if after := snapshot(t, p.open(t)); !slices.Equal(before, after) {
		t.Errorf("something was changed:\n%s\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// An address of an instance may have any text in it; the mark tells it back, or its digest.
func FuzzMark(f *testing.F) {
	for _, v := range hostile("/tmp/canary") {
		f.Add("t", v)
	}
	f.Fuzz(func(t *testing.T, testbed, address string) {
		alias := aliasOf(providers.Mark{Testbed: testbed, Address: address})
		if len(alias) > longestAlias || strings.Trim(alias, alphanumeric+"_.:%[]-") != "" {
			t.Errorf("%q", alias)
		}
		if got := owner(alias); len(alias) < longestAlias && strings.Count(alias, ":") == 2 && !strings.HasSuffix(alias, ":") && got != (providers.Mark{Testbed: testbed, Address: address}) {
			t.Errorf("%q is read as %+v", alias, got)
		}
	})
}

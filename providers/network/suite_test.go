package network

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

type attrs = map[string]cty.Value

func str(s string) cty.Value { return cty.StringVal(s) }
func num(n int64) cty.Value  { return cty.NumberIntVal(n) }

func strs(s ...string) cty.Value {
	var out []cty.Value
	for _, x := range s {
		out = append(out, str(x))
	}
	if out == nil {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(out)
}

func with(base attrs, more attrs) attrs {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

// prefix is what names of namespaces of tests begin with. On a real machine all links of tests are in such namespaces.
const prefix = "plt-net-"

// places are kinds of worlds that the suites run in. Each subtest has one of its own with the namespaces plt-net-a and plt-net-b, made before and removed after it.
type place struct {
	name string
	open func(t *testing.T) providers.Host
}

// fakePlace keeps one host for each subtest.
func fakePlace(seed ...string) place {
	return fakePlaceWith(func(*fake.Conn) error { return nil }, seed...)
}

func fakePlaceWith(set func(*fake.Conn) error, seed ...string) place {
	conns := map[string]*fake.Conn{}
	return place{name: "fake", open: func(t *testing.T) providers.Host {
		c := conns[t.Name()]
		if c == nil {
			var err error
			if c, err = fake.Open(t.TempDir()); err != nil {
				t.Fatal(err)
			}
			conns[t.Name()] = c
			if err := set(c); err != nil {
				t.Fatal(err)
			}
			shell(t, c, seed...)
		}
		return hostkit.New("dut", c, facts)
	}}
}

// realPlace is this machine. Its namespaces are removed when the test ends.
func realPlace(t *testing.T, seed ...string) place {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("needs root and network namespaces: set PLUMB_REAL=1")
	}
	if os.Geteuid() != 0 {
		t.Fatal("needs root")
	}
	conn := transport.NewLocal("dut")
	clear := func() {
		for _, ns := range []string{"a", "b", "c"} {
			if _, err := os.Stat("/run/netns/" + prefix + ns); err == nil {
				shell(t, conn, "ip netns del "+prefix+ns)
			}
		}
	}
	clear()
	t.Cleanup(clear)
	shell(t, conn, seed...)
	return place{name: "real", open: func(*testing.T) providers.Host { return hostkit.New("dut", transport.NewLocal("dut"), facts) }}
}

// shell runs commands: words without quotes.
func shell(t *testing.T, c providers.Conn, lines ...string) string {
	t.Helper()
	var out strings.Builder
	for _, l := range lines {
		res, err := c.Run(context.WithoutCancel(t.Context()), providers.Cmd{Args: strings.Fields(l)}) // cleanups run commands too
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		out.Write(res.Stdout)
	}
	return out.String()
}

// bed is what links are tried in.
var bed = []string{"ip netns add plt-net-a", "ip netns add plt-net-b"}

func drift(lines ...string) func(*testing.T, providers.Host) {
	return func(t *testing.T, h providers.Host) {
		t.Helper()
		// A drift is done again after it was mended or not: what is done already fails.
		for _, l := range lines {
			_, _ = h.Conn().Run(t.Context(), providers.Cmd{Args: strings.Fields(l)})
		}
	}
}

// snapshot is all that this package may change, on a real machine of the links of tests.
func snapshot(t *testing.T, h providers.Host) []string {
	t.Helper()
	s, err := sessionOf(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.spaces)) {
		if name != "" && !strings.HasPrefix(name, prefix) {
			continue
		}
		sp := w.spaces[name]
		out = append(out, fmt.Sprintf("namespace %q: %s", name, sp.alias()))
		others := func(dev string) bool {
			return name == "" && providers.ThisMachine(h.Conn()) && !strings.HasPrefix(dev, prefix)
		}
		for _, n := range slices.Sorted(maps.Keys(sp.links)) {
			if others(n) {
				continue
			}
			l := sp.links[n]
			out = append(out, fmt.Sprintf("%s: %s up %t mtu %d mac %s alias %q master %q promisc %t allmulti %t data %v", end{name, n}, l.Info.Kind, l.up(), l.MTU, l.MAC, l.Alias, l.Master, l.has("PROMISC"), l.has("ALLMULTI"), settled(l.Info.Data)))
			for _, a := range l.given() {
				out = append(out, fmt.Sprintf("%s: address %+v", end{name, n}, a))
			}
		}
		for _, r := range sp.routes {
			if r.Protocol != kernelProto && !others(r.Dev) {
				out = append(out, fmt.Sprintf("namespace %q: route %+v", name, r))
			}
		}
		for _, n := range sp.neighbours {
			if others(n.Dev) {
				continue
			}
			out = append(out, fmt.Sprintf("namespace %q: neighbour %+v", name, n))
		}
	}
	slices.Sort(out)
	return out
}

// settled is a bridge's state without timers and counters.
func settled(data map[string]any) map[string]any {
	out := map[string]any{}
	for _, k := range []string{"stp_state", "ageing_time", "vlan_filtering"} {
		if v, ok := data[k]; ok {
			out[k] = v
		}
	}
	return out
}

// suite runs the conformance suite.
func suite(t *testing.T, p place, c conformance.Case) {
	c.Open = p.open
	if c.Snapshot == nil {
		c.Snapshot = snapshot
	}
	conformance.Run(t, c)
}

// drivers adds to a snapshot what ethtool tells of one link.
func drivers(e end) func(*testing.T, providers.Host) []string {
	return func(t *testing.T, h providers.Host) []string {
		t.Helper()
		out := snapshot(t, h)
		s, err := sessionOf(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.driver(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(d.values)) {
			out = append(out, name+": "+d.values[name])
		}
		for _, name := range slices.Sorted(maps.Keys(d.features)) {
			out = append(out, fmt.Sprintf("%s: %+v", name, d.features[name]))
		}
		return out
	}
}

// facts are as many as the types ask for.
func facts(context.Context, providers.Conn) (*providers.Facts, error) {
	return &providers.Facts{Root: true}, nil
}

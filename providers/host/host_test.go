package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

func local(*testing.T) providers.Host {
	return hostkit.New("local", transport.NewLocal("local"), Gather)
}

// real skips where real daemons and settings are not to be touched.
func real(t *testing.T) {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the real tests need root")
	}
}

func snapshot(t *testing.T, h providers.Host) []string {
	t.Helper()
	s, err := Snapshot(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hugepagesCase(open func(*testing.T) providers.Host, count int64) conformance.Case {
	pages := func(n int64) map[string]cty.Value {
		return map[string]cty.Value{"size": cty.StringVal("2MB"), "pages": cty.MapVal(map[string]cty.Value{"0": cty.NumberIntVal(n)})}
	}
	write := func(t *testing.T, h providers.Host, n string) {
		if err := h.Conn().WriteFile(t.Context(), nodeDir+"/node0/hugepages/hugepages-2048kB/nr_hugepages", []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return conformance.Case{
		Type: Hugepages{}, Open: open, Config: pages(count), Update: pages(count / 2), Snapshot: snapshot,
		Drift: map[string]func(*testing.T, providers.Host){
			"lowered":   func(t *testing.T, h providers.Host) { write(t, h, "1") },
			"unmounted": func(t *testing.T, h providers.Host) { run(t, h.Conn(), "umount", "/dev/hugepages") },
		},
	}
}

func run(t *testing.T, conn providers.Conn, args ...string) {
	t.Helper()
	if _, err := conn.Run(t.Context(), providers.Cmd{Args: args}); err != nil {
		t.Fatal(err)
	}
}

func TestRealHugepages(t *testing.T) {
	real(t)
	conformance.Run(t, hugepagesCase(local, 16))
}

// A machine never has a million gigabytes: the kernel grants what it can, and the test sees it taken back.
func TestRealShortGrantIsRolledBack(t *testing.T) {
	real(t)
	shortGrantIsRolledBack(t, local(t))
}

func shortGrantIsRolledBack(t *testing.T, h providers.Host) {
	defer h.Close()
	before := snapshot(t, h)
	typ := Hugepages{}
	planned := conformance.Desired(&typ.Schema().Block, map[string]cty.Value{"size": cty.StringVal("1G"),
		"pages": cty.MapVal(map[string]cty.Value{"0": cty.NumberIntVal(1000)})})
	req := providers.ApplyRequest{Host: h, Planned: planned, Prior: cty.NullVal(planned.Type()), Log: func(s string) { t.Log(s) }}
	undo, err := typ.Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Undo = undo
	_, err = typ.Apply(t.Context(), req)
	if err == nil {
		t.Fatal("1000 GB were granted")
	}
	t.Log(err)
	if diff := cmp.Diff(before, snapshot(t, h)); diff != "" {
		t.Errorf("not rolled back (-before +after):\n%s", diff)
	}
}

func TestRealSnapshotIsStable(t *testing.T) {
	real(t)
	snapshotIsStable(t, local(t))
}

func snapshotIsStable(t *testing.T, h providers.Host) {
	defer h.Close()
	first := snapshot(t, h)
	if len(first) < 3 {
		t.Errorf("too short: %q", first)
	}
	if diff := cmp.Diff(first, snapshot(t, h)); diff != "" {
		t.Error(diff)
	}
}

func TestOpener(t *testing.T) {
	open := Opener(Connected)
	schema := Schema()
	block := func(way string, values map[string]cty.Value) map[string]cty.Value {
		return map[string]cty.Value{way: conformance.Desired(&schema.Blocks[way].Block, values)}
	}
	h, err := open(t.Context(), "dut", conformance.Desired(schema, nil), nil)
	if err != nil || h.Name() != "dut" || !providers.ThisMachine(h.Conn()) {
		t.Fatalf("%v, %v", h, err)
	}
	others := func(context.Context, string) (providers.Host, error) {
		return nil, fmt.Errorf("gw %w: no route", providers.ErrUnreachable)
	}
	ssh := block("ssh", map[string]cty.Value{"address": cty.StringVal("192.0.2.1"), "config": cty.StringVal("none"), "jump": cty.StringVal("gw")})
	both := block("netns", map[string]cty.Value{"name": cty.StringVal("x")})
	maps.Copy(both, ssh)
	for name, tc := range map[string]struct {
		config map[string]cty.Value
		want   string
	}{
		"two ways":     {both, "it has the blocks ssh and netns: a host is reached in one way"},
		"a container":  {block("container", map[string]cty.Value{"name": cty.StringVal("x")}), "the block container is not supported by this version"},
		"no namespace": {block("netns", map[string]cty.Value{"name": cty.StringVal("plt-none")}), "dut cannot be reached: there is no network namespace plt-none"},
		"a jump host":  {ssh, "host dut is reached through host gw: gw cannot be reached: no route"},
	} {
		if name == "no namespace" && os.Geteuid() != 0 {
			continue // ip says that it may not, which is another test's
		}
		_, err := open(t.Context(), "dut", conformance.Desired(schema, tc.config), others)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		if reach := name == "no namespace" || name == "a jump host"; errors.Is(err, providers.ErrUnreachable) != reach {
			t.Errorf("%s: is it out of reach? %v", name, err)
		}
	}
}

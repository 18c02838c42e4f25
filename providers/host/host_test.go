package host

import (
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

func TestRealFacts(t *testing.T) {
	real(t)
	f, err := Gather(t.Context(), transport.NewLocal("local"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.CPUs) == 0 || !f.CPUs[0].Online || len(f.Nodes) == 0 || f.Nodes[0].MemoryBytes == 0 || !f.Root || f.BootID == "" || f.Kernel == "" {
		t.Errorf("facts are missing: %+v", f)
	}
	if errs := f.Value.Type().TestConformance(factsSchema().Block.ImpliedType()); len(errs) > 0 {
		t.Errorf("the value is not of the schema's type: %v", errs)
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

func TestOpenerRefusesOtherMachines(t *testing.T) {
	open := Opener(Connected)
	schema := Schema()
	ssh := cty.ObjectVal(map[string]cty.Value{"address": cty.StringVal("a"), "user": cty.NullVal(cty.String), "port": cty.NullVal(cty.Number),
		"key": cty.NullVal(cty.String), "jump": cty.NullVal(cty.String)})
	_, err := open(t.Context(), "dut", conformance.Desired(schema, map[string]cty.Value{"ssh": ssh}), nil)
	if err == nil {
		t.Fatal("a host with ssh was opened")
	}
	h, err := open(t.Context(), "dut", conformance.Desired(schema, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if h.Name() != "dut" {
		t.Errorf("name is %q", h.Name())
	}
}

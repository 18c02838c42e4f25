package config

import "testing"

func TestQuickstartLoads(t *testing.T) {
	c, diags := Load("../../examples/quickstart", "0.1.0")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	r := c.Root.Resources["ovs_port.p"]
	if r == nil || r.ForEach == nil || r.Host.RootName() != "host" || c.Root.Hosts["dut"] == nil {
		t.Errorf("ovs_port.p is %+v", r)
	}
	again, diags := LoadSources(c.Sources, "../../examples/quickstart", "0.1.0")
	if diags.HasErrors() || len(again.Root.Resources) != len(c.Root.Resources) {
		t.Errorf("from sources: %v", diags)
	}
}

package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckProviders(t *testing.T) {
	c, diags := LoadFrom(Memory{
		"main.plumb.hcl": []byte("plumb {\n  required_providers {\n    ovs  = \">= 0.3\"\n    dpkd = \">= 0.1\"\n    odd  = \">= 0.1\"\n  }\n}\n" +
			"module \"a\" { source = \"./m\" }\nmodule \"b\" { source = \"./m\" }\n"),
		"m/main.plumb.hcl": []byte("plumb {\n  required_providers {\n    ovs = \"~> 0.4.0\"\n  }\n}\n"),
	}, ".", running)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := "error main.plumb.hcl:4,12-20: Unknown provider\n    There is no provider \"dpkd\" in this Plumb. Did you mean \"dpdk\"? All of them are built in.\n" +
		"error main.plumb.hcl:5,12-20: Unknown provider version\n    Provider odd says that its version is \"new\", which is not a version: this is a bug in that provider.\n" +
		"error m/main.plumb.hcl:3,11-21: Unsupported provider version\n    Provider ovs ~> 0.4.0 is required, and this Plumb has 0.3.0-dev. Providers are built in: use a Plumb that has it.\n"
	got := printDiags(CheckProviders(c, map[string]string{"ovs": "0.3.0-dev", "dpdk": "0.3.0", "odd": "new"}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

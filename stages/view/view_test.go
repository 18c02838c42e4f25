package view

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds text against a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (run with -update to take it):\n%s", file, d)
	}
}

func instance(t *testing.T, text string) addrs.Instance {
	t.Helper()
	a, err := addrs.ParseInstance(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// catalog has one type with everything that is shown in a way of its own.
func catalog() *schema.Catalog {
	text := func(d string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Description: d}
	}
	rule := schema.Block{Description: "A rule.", Attributes: map[string]*schema.Attribute{"match": text("What it is for."), "rate": {Type: cty.Number, Optional: true, Description: "Frames per second."}}}
	return &schema.Catalog{
		Resources: map[string]*schema.Resource{"port": {
			Type: "port", Description: "A port of a switch. It has a name.", Example: "resource \"port\" \"p\" {\n  name = \"p\"\n}",
			Block: schema.Block{
				Attributes: map[string]*schema.Attribute{
					"name":   {Type: cty.String, Required: true, Cost: schema.Replace, Description: "Name on the switch."},
					"mtu":    {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1500), Cost: schema.PortReset, Description: "Largest frame, in bytes."},
					"mode":   {Type: cty.String, Optional: true, OneOf: []string{"client", "server"}, Since: "OVS 2.9", Description: "Who listens: client | server."},
					"key":    {Type: cty.String, Optional: true, Sensitive: true, Deprecated: "Use a file.", Description: "Password."},
					"flows":  {Type: cty.List(cty.String), Optional: true, Description: "Flows."},
					"tags":   {Type: cty.Map(cty.String), Optional: true, Description: "Tags."},
					"any":    {Type: cty.DynamicPseudoType, Optional: true, Description: "Anything."},
					"ofport": {Type: cty.Number, Computed: true, Volatile: true, Description: "Number that the switch gave."},
				},
				Blocks: map[string]*schema.NestedBlock{
					"qos":   {Nesting: schema.Single, Block: rule},
					"rule":  {Nesting: schema.List, MaxItems: 4, Block: rule},
					"queue": {Nesting: schema.Map, Block: rule},
				},
			},
		}},
		Data:       map[string]*schema.Resource{"host_facts": {Type: "host_facts", Description: "Facts."}},
		Generators: map[string]*schema.Generator{"echo": {Type: "echo", Description: "Sends frames back.", Block: schema.Block{Attributes: map[string]*schema.Attribute{"rate": text("Rate.")}}}},
		Host:       &schema.Block{Description: "A machine."},
		Methods:    map[string]*schema.Block{"latency": {Description: "RFC 2544 section 26.2. Needs a generator."}},
	}
}

package eval_test

import (
	"errors"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// testCatalog has one of everything that a schema can say.
func testCatalog() *schema.Catalog {
	str := func() *schema.Attribute { return &schema.Attribute{Type: cty.String, Optional: true} }
	return &schema.Catalog{
		Resources: map[string]*schema.Resource{
			"plumb_data": {Type: "plumb_data", Hostless: true, Block: schema.Block{Attributes: map[string]*schema.Attribute{
				"input":  {Type: cty.DynamicPseudoType, Optional: true},
				"output": {Type: cty.DynamicPseudoType, Computed: true, Volatile: true},
			}}},
			"test_switch": {Type: "test_switch", Block: schema.Block{
				Attributes: map[string]*schema.Attribute{
					"id":     {Type: cty.String, Computed: true},
					"name":   {Type: cty.String, Required: true},
					"mode":   {Type: cty.String, Optional: true, OneOf: []string{"netdev", "system"}, Default: cty.StringVal("netdev")},
					"cores":  {Type: cty.String, Optional: true, Validate: noLetters},
					"mac":    {Type: cty.String, Optional: true, Canonical: lowerMAC},
					"mtu":    {Type: cty.Number, Optional: true, Computed: true},
					"secret": {Type: cty.String, Optional: true, Sensitive: true, Validate: noLetters, Description: "Digits only."},
					"limits": {Type: cty.List(cty.Number), Optional: true, Validate: allPositive},
					"old":    {Type: cty.String, Optional: true, Deprecated: "use name."},
				},
				Blocks: map[string]*schema.NestedBlock{
					"dpdk": {Nesting: schema.Single, Block: schema.Block{Attributes: map[string]*schema.Attribute{
						"socket_mem": {Type: cty.List(cty.Number), Optional: true},
						"lcores":     {Type: cty.String, Optional: true, Default: cty.StringVal("0"), Validate: noLetters},
						"version":    {Type: cty.String, Computed: true},
					}}},
					"port": {Nesting: schema.List, MaxItems: 3, Block: schema.Block{Attributes: map[string]*schema.Attribute{
						"name":   {Type: cty.String, Required: true},
						"number": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1)},
						"token":  {Type: cty.String, Optional: true, Sensitive: true},
					}}},
					"option": {Nesting: schema.Map, Block: schema.Block{Attributes: map[string]*schema.Attribute{
						"value": str(),
						"kind":  {Type: cty.String, Optional: true, OneOf: []string{"a", "b"}, Default: cty.StringVal("a")},
					}}},
				},
			}},
			"test_port": {Type: "test_port", Block: schema.Block{Attributes: map[string]*schema.Attribute{
				"id":     {Type: cty.String, Computed: true},
				"bridge": {Type: cty.String, Required: true},
				"number": {Type: cty.Number, Optional: true, Computed: true},
			}}},
		},
		Data: map[string]*schema.Resource{
			"test_facts": {Type: "test_facts", Block: schema.Block{Attributes: map[string]*schema.Attribute{
				"query":  str(),
				"result": {Type: cty.List(cty.String), Computed: true},
			}}},
		},
		Generators: map[string]*schema.Generator{
			"dummy": {Type: "dummy", Hostless: true, Block: schema.Block{Attributes: map[string]*schema.Attribute{
				"capacity": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1000)},
			}}},
			"testpmd": {Type: "testpmd", Block: schema.Block{Attributes: map[string]*schema.Attribute{
				"cores": {Type: cty.String, Required: true},
			}}},
		},
		Host: &schema.Block{
			Attributes: map[string]*schema.Attribute{
				"reboot": {Type: cty.String, Optional: true, OneOf: []string{"never", "allowed"}, Default: cty.StringVal("never")},
			},
			Blocks: map[string]*schema.NestedBlock{
				"ssh": {Nesting: schema.Single, Block: schema.Block{Attributes: map[string]*schema.Attribute{
					"address": {Type: cty.String, Required: true},
					"user":    str(),
				}}},
			},
		},
		Benchmark: &schema.Block{
			Attributes: map[string]*schema.Attribute{"repeat": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1)}},
			Blocks: map[string]*schema.NestedBlock{
				"traffic": {Nesting: schema.Single, Block: schema.Block{Attributes: map[string]*schema.Attribute{
					"frame_sizes": {Type: cty.List(cty.Number), Optional: true, Default: cty.ListVal([]cty.Value{cty.NumberIntVal(64)})},
				}}},
				"load": {Nesting: schema.List, Block: schema.Block{Attributes: map[string]*schema.Attribute{
					"host":    {Type: cty.String, Optional: true, Reference: schema.RefHost},
					"workers": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1)},
				}}},
			},
		},
		Methods: map[string]*schema.Block{
			"continuous": {Attributes: map[string]*schema.Attribute{"duration": {Type: cty.String, Optional: true, Default: cty.StringVal("10s")}}},
			"reset":      {Attributes: map[string]*schema.Attribute{"target": {Type: cty.String, Required: true, Reference: schema.RefResource}}},
			"throughput": {Attributes: map[string]*schema.Attribute{"loss": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(0)}}},
		},
	}
}

func noLetters(v cty.Value) error {
	if i := strings.IndexFunc(v.AsString(), func(r rune) bool { return r >= 'a' && r <= 'z' }); i >= 0 {
		return errors.New(`"` + v.AsString() + `" has letters`)
	}
	return nil
}

func lowerMAC(v cty.Value) (cty.Value, error) {
	if len(v.AsString()) != 17 {
		return v, errors.New("a MAC address has 17 characters")
	}
	return cty.StringVal(strings.ToLower(v.AsString())), nil
}

func allPositive(v cty.Value) error {
	for i, e := range v.AsValueSlice() {
		if e.AsBigFloat().Sign() <= 0 {
			return cty.Path{cty.IndexStep{Key: cty.NumberIntVal(int64(i))}}.NewErrorf("limits are greater than 0")
		}
	}
	return nil
}

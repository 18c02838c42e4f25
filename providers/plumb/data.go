// Package plumb holds the resource type that needs no host: plumb_data stores a value in the state.
package plumb

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// Data is plumb_data.
type Data struct{ schema *schema.Resource }

var (
	_ providers.Resource = (*Data)(nil)
	_ providers.Planner  = (*Data)(nil)
)

// NewData is the type. Its schema is made once: a testbed may have thousands of instances.
func NewData() *Data {
	return &Data{schema: &schema.Resource{
		Type:        "plumb_data",
		Description: "Stores a value and touches nothing. It carries a value through the graph, or makes others replace themselves when one changes.",
		Example: `resource "plumb_data" "revision" {
  input = { datapath = "dpdk", rxqs = 2 }
}`,
		Hostless: true,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"input":            {Type: cty.DynamicPseudoType, Optional: true, Description: "Any value."},
			"output":           {Type: cty.DynamicPseudoType, Computed: true, Description: "The value of input. It is unknown while input is."},
			"triggers_replace": {Type: cty.DynamicPseudoType, Optional: true, Cost: schema.Replace, Description: "Any value; when it changes, the instance is replaced, and with it what has it in replace_triggered_by."},
		}},
	}}
}

// Schema is constant.
func (d *Data) Schema() *schema.Resource { return d.schema }

// Read returns what was stored. An output that a killed apply did not record is the input.
func (d *Data) Read(_ context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	return providers.ReadResult{Current: whole(req.Prior)}, nil
}

// Plan lets output follow input, so that what refers to it knows as much as input says.
func (d *Data) Plan(_ context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	return providers.PlanResult{Planned: whole(req.Proposed)}, nil
}

// Apply has nothing to do.
func (d *Data) Apply(_ context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	return providers.ApplyResult{New: whole(req.Planned)}, nil
}

// whole sets output to input. A null object stays one.
func whole(v cty.Value) cty.Value {
	if v.IsNull() || !v.IsKnown() {
		return v
	}
	input := v.GetAttr("input")
	return cty.ObjectVal(map[string]cty.Value{"input": input, "output": input, "triggers_replace": v.GetAttr("triggers_replace")})
}

package apply

import (
	"github.com/hashicorp/hcl/v2"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"plumb/stages/internal/value"
	"plumb/stages/state"
)

// outputs evaluates the root outputs into the draft; after a run with targets they stay as they are. One that is not known because a step failed keeps its old value; then known is false.
func (r *runner) outputs() (known bool, diags hcl.Diagnostics) {
	base := r.draft.Base()
	if r.in.Plan.Destroy {
		if r.draft.Empty() {
			base.Outputs = map[string]state.Output{}
		}
		return true, nil
	}
	if r.eval == nil || len(r.in.Plan.Targets) > 0 {
		return true, nil
	}
	outs, diags := r.eval.Outputs()
	if diags.HasErrors() {
		return false, diags
	}
	known = true
	now := map[string]state.Output{}
	for name, o := range outs {
		v, sensitive := value.Unmark(o.Value)
		if !v.IsWhollyKnown() {
			known = false
			if old, ok := base.Outputs[name]; ok {
				now[name] = old
			}
			continue
		}
		e, err := value.Encode(v, v.Type())
		var ty []byte
		if err == nil {
			ty, err = ctyjson.MarshalType(v.Type())
		}
		if err != nil {
			diags = append(diags, errorDiag("Output "+name+" cannot be kept", sentence(err), nil)...)
			continue
		}
		now[name] = state.Output{Value: e.JSON, Type: ty, Sensitive: o.Sensitive || len(sensitive) > 0}
	}
	base.Outputs = now
	return known, diags
}

package plan

import (
	"github.com/hashicorp/hcl/v2"

	"plumb/lang/eval"
)

// finishDiagnostics leaves out what is said twice: the same about the same place, and what concerns a host rather than one argument.
func finishDiagnostics(diags hcl.Diagnostics) hcl.Diagnostics {
	type key struct{ host, summary, detail string }
	seen := map[key]bool{}
	var out hcl.Diagnostics
	for _, d := range diags {
		if n, ok := d.Extra.(note); ok && n.host != "" {
			k := key{n.host, d.Summary, d.Detail}
			if seen[k] {
				continue
			}
			seen[k] = true
		}
		out = append(out, d)
	}
	return eval.Dedup(out)
}

// notes are the warnings, as data in the plan.
func notes(diags hcl.Diagnostics) []Note {
	var out []Note
	for _, d := range diags {
		if d.Severity == hcl.DiagWarning {
			n, _ := d.Extra.(note)
			out = append(out, Note{Addr: n.addr, Summary: d.Summary, Detail: d.Detail})
		}
	}
	return out
}

// Counts sums a plan up.
type Counts struct {
	Add     int            `json:"add"`
	Change  int            `json:"change"`
	Destroy int            `json:"destroy"`
	Reapply int            `json:"reapply"`
	Read    int            `json:"read"`
	Forget  int            `json:"forget"`
	Effects map[string]int `json:"effects,omitempty"` // of the changes: "restarts ovs-vswitchd on dut" once
}

// Summary counts what a plan does. A replace counts as one to add and one to destroy.
func (p *Plan) Summary() Counts {
	out := Counts{}
	for i := range p.Changes {
		c := &p.Changes[i]
		switch c.Action {
		case Create:
			out.Add++
		case Update:
			out.Change++
		case Delete:
			out.Destroy++
		case Replace:
			out.Add++
			out.Destroy++
		case Reapply:
			out.Reapply++
		case Read:
			out.Read++
		case Forget:
			out.Forget++
		}
		if c.Action != NoOp {
			for _, e := range c.Effects {
				if out.Effects == nil {
					out.Effects = map[string]int{}
				}
				out.Effects[e]++
			}
		}
	}
	return out
}

// HasChanges says whether apply would do anything: to an instance, or to an output.
func (p *Plan) HasChanges() bool {
	for i := range p.Changes {
		if p.Changes[i].Action != NoOp {
			return true
		}
	}
	for _, o := range p.Outputs {
		if o.Action != NoOp {
			return true
		}
	}
	return false
}

package view

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"plumb/lang/schema"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// Instance renders one instance of a state as an HCL-like block. Sensitive values are not shown.
func Instance(i *state.Instance, cat *schema.Catalog, st Style) string {
	var out strings.Builder
	note := ""
	switch {
	case i.Deposed:
		note = " (the replaced object, still to be destroyed)"
	case i.Status == state.InDoubt:
		note = " (in doubt: an apply was cut off; the next one finds out)"
	case i.Status == state.Incomplete:
		note = " (incomplete: its last apply failed)"
	}
	fmt.Fprintf(&out, "%s\n", st.paint(bold, "# "+i.Addr.String()+note))
	fmt.Fprintf(&out, "resource %q %q {\n", i.Addr.Resource.Type, i.Addr.Resource.Name)
	if i.Host != "" {
		fmt.Fprintf(&out, "    host = host.%s\n", i.Host)
	}
	c := plan.Change{Addr: i.Addr}
	for _, p := range i.Sensitive {
		c.Sensitive = append(c.Sensitive, p)
	}
	attrs, _ := decode(i.Attributes).(map[string]any)
	b := newBody(&c, Style{}, true, &out)
	b.object(1, nil, attrs, attrs, blockOf(cat, i.Addr))
	out.WriteString("}\n")
	return out.String()
}

// State renders a whole state: instances, then outputs.
func State(s *state.State, cat *schema.Catalog, st Style) string {
	if s == nil || len(s.Instances) == 0 && len(s.Outputs) == 0 {
		return "The state is empty: nothing has been applied.\n"
	}
	var out strings.Builder
	for n, i := range s.Instances {
		if n > 0 {
			out.WriteString("\n")
		}
		out.WriteString(Instance(i, cat, st))
	}
	if len(s.Outputs) > 0 {
		out.WriteString("\nOutputs:\n\n" + Outputs(s.Outputs))
	}
	return out.String()
}

// Outputs renders outputs, sensitive ones without their value.
func Outputs(m map[string]state.Output) string {
	var out strings.Builder
	for _, name := range sortedKeys(m) {
		text := "(sensitive value)"
		if !m[name].Sensitive {
			text = inline(decode(m[name].Value))
		}
		fmt.Fprintf(&out, "%s = %s\n", name, text)
	}
	return out.String()
}

// Redact is a copy of the state whose sensitive values are null, for JSON output.
func Redact(s *state.State) *state.State {
	if s == nil {
		return nil
	}
	c := *s
	c.Instances = nil
	for _, i := range s.Instances {
		r := *i
		r.Undo = nil
		r.Attributes = redact(i.Attributes, i.Sensitive)
		c.Instances = append(c.Instances, &r)
	}
	c.Outputs = map[string]state.Output{}
	for name, o := range s.Outputs {
		if o.Sensitive {
			o.Value = json.RawMessage("null")
		}
		c.Outputs[name] = o
	}
	return &c
}

// RedactPlan is a copy of the plan whose sensitive values are null, for JSON output.
func RedactPlan(p *plan.Plan) *plan.Plan {
	c := *p
	redactAll := func(in []plan.Change) []plan.Change {
		out := make([]plan.Change, len(in))
		for i, ch := range in {
			paths := make([][]string, len(ch.Sensitive))
			for j, s := range ch.Sensitive {
				paths[j] = s
			}
			ch.Before, ch.After = redact(ch.Before, paths), redact(ch.After, paths)
			out[i] = ch
		}
		return out
	}
	c.Changes, c.Drift = redactAll(p.Changes), redactAll(p.Drift)
	c.Outputs = map[string]plan.OutputChange{}
	for name, o := range p.Outputs {
		if o.Sensitive {
			o.Before, o.After = nil, nil
		}
		c.Outputs[name] = o
	}
	return &c
}

func redact(raw json.RawMessage, paths [][]string) json.RawMessage {
	if len(paths) == 0 || len(raw) == 0 {
		return raw
	}
	v := decode(raw)
	for _, p := range paths {
		v = blank(v, p)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

func blank(v any, path []string) any {
	if len(path) == 0 {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		if e, ok := v[path[0]]; ok {
			v[path[0]] = blank(e, path[1:])
		}
	case []any:
		for i := range v {
			if strconv.Itoa(i) == path[0] {
				v[i] = blank(v[i], path[1:])
			}
		}
	}
	return v
}

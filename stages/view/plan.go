package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/stages/plan"
)

// PlanOptions say how much of a plan is shown.
type PlanOptions struct {
	Style
	Catalog *schema.Catalog // tells blocks from arguments; nil: all are written as arguments
	Concise bool            // one line per resource, grouped by host
	Verbose bool            // unchanged attributes too
}

// Plan renders a plan for people.
func Plan(p *plan.Plan, o PlanOptions) string {
	var out strings.Builder
	drift(&out, p, o)
	var shown []*plan.Change
	for i := range p.Changes {
		if p.Changes[i].Action != plan.NoOp {
			shown = append(shown, &p.Changes[i])
		}
	}
	outputs := changedOutputs(p)
	if len(shown) == 0 && len(outputs) == 0 {
		out.WriteString(o.paint(green, "No changes.") + " The testbed is as the configuration says.\n")
		reads(&out, p, o)
		return out.String()
	}
	if len(shown) > 0 {
		legend(&out, shown, o)
		if o.Concise {
			concise(&out, shown, o)
		} else {
			for _, c := range shown {
				change(&out, c, o)
			}
		}
	}
	if len(shown) > 0 {
		out.WriteString(Summary(p, o.Style) + "\n")
	}
	if len(outputs) > 0 {
		if len(shown) > 0 {
			out.WriteString("\n")
		}
		out.WriteString("Changes to outputs:\n")
		for _, name := range outputs {
			oc := p.Outputs[name]
			out.WriteString("  " + outputLine(name, oc, o.Style) + "\n")
		}
	}
	for _, host := range sortedKeys(p.Reboots()) {
		fmt.Fprintf(&out, "\n%s host.%s is rebooted once, for %s.\n", o.paint(yellow, "Reboot:"), host, strings.Join(p.Reboots()[host], ", "))
	}
	if len(p.Benchmarks) > 0 {
		fmt.Fprintf(&out, "\nApply then runs %s: %s.\n", plural(len(p.Benchmarks), "benchmark"), strings.Join(p.Benchmarks, ", "))
	}
	reads(&out, p, o)
	return out.String()
}

func drift(out *strings.Builder, p *plan.Plan, o PlanOptions) {
	if len(p.Drift) == 0 {
		return
	}
	out.WriteString(o.paint(cyan, "Note:") + " the world has changed outside of Plumb since the last apply:\n\n")
	for i := range p.Drift {
		c := p.Drift[i]
		if c.Action == plan.Delete || c.Action == plan.Forget || len(c.After) == 0 || string(c.After) == "null" {
			fmt.Fprintf(out, "  %s %s %s\n", o.paint(red, "-"), c.Addr, o.paint(bold, "is gone"))
			continue
		}
		fmt.Fprintf(out, "  %s %s has changed\n", o.paint(yellow, "~"), c.Addr)
		b := newBody(&c, o.Style, false, out)
		before, _ := decode(c.Before).(map[string]any)
		after, _ := decode(c.After).(map[string]any)
		b.costs = nil
		b.object(2, nil, before, after, blockOf(o.Catalog, c.Addr))
	}
	out.WriteString("\n")
}

func legend(out *strings.Builder, shown []*plan.Change, o PlanOptions) {
	out.WriteString("Plumb will do the following:\n")
	for _, l := range []struct{ symbol, color, text string }{
		{"+", green, "create"}, {"~", yellow, "change in place"}, {"-", red, "destroy"}, {"-/+", red, "destroy, then create"},
		{"+/-", red, "create, then destroy"}, {"<=", cyan, "read"}, {"!", yellow, "apply again: another change takes its effect away"}, {".", dim, "forget: it is gone"},
	} {
		if slices.ContainsFunc(shown, func(c *plan.Change) bool { return symbolOf(c) == l.symbol }) {
			fmt.Fprintf(out, "  %s%s %s\n", indent(3-len(l.symbol)), o.paint(l.color, l.symbol), l.text)
		}
	}
	out.WriteString("\n")
}

func symbolOf(c *plan.Change) string {
	switch c.Action {
	case plan.Create:
		return "+"
	case plan.Update:
		return "~"
	case plan.Delete:
		return "-"
	case plan.Replace:
		if c.CreateBeforeDestroy {
			return "+/-"
		}
		return "-/+"
	case plan.Read:
		return "<="
	case plan.Reapply:
		return "!"
	case plan.Forget:
		return "."
	}
	return " "
}

func colorOf(symbol string) string {
	switch symbol {
	case "+":
		return green
	case "~", "!":
		return yellow
	case "<=":
		return cyan
	case ".":
		return dim
	}
	return red
}

// Sentence says what happens to an instance, and why: "will be updated in-place".
func Sentence(c *plan.Change) string {
	switch c.Action {
	case plan.Create:
		return "will be created"
	case plan.Update:
		if c.Reason == plan.WasInDoubt {
			return "will be finished: an earlier apply was cut off"
		}
		return "will be changed in place"
	case plan.Delete:
		return "will be destroyed"
	case plan.Replace:
		switch c.Reason {
		case plan.Requested:
			return "will be replaced, as requested"
		case plan.Triggered:
			return "will be replaced: replace_triggered_by"
		}
		return "must be replaced"
	case plan.Read:
		return "will be read during apply"
	case plan.Reapply:
		return "will be applied again"
	case plan.Forget:
		return "will be forgotten: it is gone"
	}
	return "stays as it is"
}

func reasonLine(c *plan.Change) string {
	switch c.Reason {
	case plan.NotInConfig:
		return "because " + c.Addr.Resource.String() + " is not in the configuration"
	case plan.CountIndex:
		return "because index " + c.Addr.Key.String() + " is out of range for count"
	case plan.EachKey:
		return "because key " + c.Addr.Key.String() + " is not in for_each"
	case plan.NoModule:
		return "because " + c.Addr.Resource.Module.String() + " is not in the configuration"
	case plan.UnknownConfig:
		return "its configuration is known only after apply"
	case plan.PendingDependency:
		return "something it depends on has changes of its own"
	case plan.LostBy:
		if c.LostWhy != "" {
			return "because of " + c.LostBy + ": " + c.LostWhy
		}
		return "because of " + c.LostBy
	}
	return ""
}

func change(out *strings.Builder, c *plan.Change, o PlanOptions) {
	head := "  # " + c.Addr.String() + " " + Sentence(c)
	if c.Action == plan.Update || c.Action == plan.Reapply {
		head += " (" + costText(c) + ")"
	}
	out.WriteString(o.paint(bold, head) + "\n")
	if r := reasonLine(c); r != "" {
		out.WriteString("  # (" + r + ")\n")
	}
	if c.Action != plan.Update {
		for _, e := range c.Effects {
			out.WriteString("  # (" + e + ")\n")
		}
	}
	symbol := symbolOf(c)
	kind := "resource"
	if c.Addr.Resource.Mode == addrs.Data {
		kind = "data"
	}
	r := c.Addr.Resource
	if c.Action == plan.Forget || c.Action == plan.Reapply {
		fmt.Fprintf(out, "%s%s %s %q %q\n\n", indent(3-len(symbol)), o.paint(colorOf(symbol), symbol), kind, r.Type, r.Name)
		return
	}
	fmt.Fprintf(out, "%s%s %s %q %q {\n", indent(3-len(symbol)), o.paint(colorOf(symbol), symbol), kind, r.Type, r.Name)
	before, _ := decode(c.Before).(map[string]any)
	after, _ := decode(c.After).(map[string]any)
	switch c.Action {
	case plan.Create, plan.Read:
		before = nil
	case plan.Delete:
		after = nil
	}
	newBody(c, o.Style, o.Verbose, out).object(2, nil, before, after, blockOf(o.Catalog, c.Addr))
	out.WriteString("    }\n\n")
}

func costText(c *plan.Change) string {
	if len(c.Effects) > 0 {
		return c.Cost.String() + ": " + strings.Join(c.Effects, ", ")
	}
	return c.Cost.String()
}

func concise(out *strings.Builder, shown []*plan.Change, o PlanOptions) {
	byHost := map[string][]*plan.Change{}
	var hosts []string
	for _, c := range shown {
		if _, ok := byHost[c.Host]; !ok {
			hosts = append(hosts, c.Host)
		}
		byHost[c.Host] = append(byHost[c.Host], c)
	}
	slices.Sort(hosts)
	for _, h := range hosts {
		if h != "" {
			out.WriteString(o.paint(bold, "host."+h) + "\n")
		}
		for _, c := range byHost[h] {
			symbol := symbolOf(c)
			line := fmt.Sprintf("%s%s %s", indent(3-len(symbol)), o.paint(colorOf(symbol), symbol), c.Addr)
			if c.Action == plan.Update || c.Action == plan.Reapply {
				line += " (" + costText(c) + ")"
			}
			out.WriteString(line + "\n")
		}
	}
	out.WriteString("\n")
}

// Summary is the one line that sums a plan up: "Plan: 3 to add, 2 to change (1 restarts ovs-vswitchd on dut), 0 to destroy."
func Summary(p *plan.Plan, st Style) string {
	n := p.Summary()
	notes := map[plan.Action]map[string]int{}
	for i := range p.Changes {
		c := &p.Changes[i]
		effects := c.Effects
		if c.Action == plan.Update && len(effects) == 0 && c.Cost > schema.Live {
			effects = []string{c.Cost.String()}
		}
		action := c.Action
		if action == plan.Replace {
			action = plan.Create
		}
		for _, e := range effects {
			if notes[action] == nil {
				notes[action] = map[string]int{}
			}
			notes[action][e]++
		}
	}
	var parts []string
	for _, x := range []struct {
		n      int
		action plan.Action
		text   string
		always bool
	}{
		{n.Add, plan.Create, "to add", true}, {n.Change, plan.Update, "to change", true}, {n.Destroy, plan.Delete, "to destroy", true},
		{n.Reapply, plan.Reapply, "to apply again", false}, {n.Read, plan.Read, "to read", false}, {n.Forget, plan.Forget, "to forget", false},
	} {
		if x.n > 0 || x.always {
			parts = append(parts, fmt.Sprintf("%d %s%s", x.n, x.text, notesText(notes[x.action])))
		}
	}
	return st.paint(bold, "Plan:") + " " + strings.Join(parts, ", ") + "."
}

// notesText is " (1 restarts ovs-vswitchd on dut)"; nothing without notes.
func notesText(notes map[string]int) string {
	if len(notes) == 0 {
		return ""
	}
	var parts []string
	for _, e := range sortedKeys(notes) {
		parts = append(parts, fmt.Sprintf("%d %s", notes[e], e))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func changedOutputs(p *plan.Plan) []string {
	var out []string
	for name, c := range p.Outputs {
		if c.Action != plan.NoOp {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func outputLine(name string, c plan.OutputChange, st Style) string {
	symbol := map[plan.Action]string{plan.Create: "+", plan.Update: "~", plan.Delete: "-"}[c.Action]
	text := inline(decode(c.After))
	switch {
	case c.Sensitive:
		text = "(sensitive value)"
	case c.Unknown:
		text = "(known after apply)"
	case c.Action == plan.Delete:
		text = inline(decode(c.Before)) + " -> null"
	case c.Action == plan.Update:
		text = inline(decode(c.Before)) + " -> " + text
	}
	return st.paint(colorOf(symbol), symbol) + " " + name + " = " + text
}

// reads says what looking at the world cost.
func reads(out *strings.Builder, p *plan.Plan, o PlanOptions) {
	for _, h := range sortedKeys(p.Reads) {
		r := p.Reads[h]
		far := "" // another machine: what latency was paid for
		if r.Connections > 0 {
			far = fmt.Sprintf(", over %s, %s one after another", plural(r.Connections, "connection"), plural(r.Rounds, "round trip"))
		}
		fmt.Fprintf(out, "%s\n", o.paint(dim, fmt.Sprintf("Read host.%s: %s, %s, %s, %s%s.", h, plural(r.Commands, "command"),
			plural(r.Files, "file read"), plural(r.OVSDB, "OVSDB transaction"), plural(r.Unixctl, "appctl call"), far)))
	}
}

func blockOf(cat *schema.Catalog, a addrs.Instance) *schema.Block {
	if cat == nil {
		return nil
	}
	m := cat.Resources
	if a.Resource.Mode == addrs.Data {
		m = cat.Data
	}
	if r := m[a.Resource.Type]; r != nil {
		return &r.Block
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

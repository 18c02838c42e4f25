package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/stages/apply"
	"plumb/stages/plan"
	"plumb/stages/state"
)

func results(t *testing.T) *apply.Result {
	row := func(addr, host string, action plan.Action, status apply.Status, because string) apply.StepResult {
		return apply.StepResult{Addr: instance(t, addr), Host: host, Action: action, Status: status, Because: because, Elapsed: 1500 * time.Millisecond}
	}
	return &apply.Result{Steps: []apply.StepResult{
		row("port.a", "gen", plan.Create, apply.Done, ""), row("port.b", "dut", plan.Update, apply.Done, ""), row("port.c", "dut", plan.Delete, apply.Failed, ""),
		row("port.d", "dut", plan.Create, apply.Skipped, "port.c"), row("port.e", "", plan.Reapply, apply.NotStarted, ""), row("port.f", "dut", plan.Read, apply.Unfinished, ""),
	}}
}

func TestFailureTable(t *testing.T) {
	for name, change := range map[string]func(*apply.Result){
		"failed": func(*apply.Result) {}, "stopped": func(r *apply.Result) { r.Stopped = true }, "cut-off": func(r *apply.Result) { r.Cancelled = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := results(t)
			change(r)
			golden(t, "failure-"+name, FailureTable(r, Style{}))
		})
	}
}

func TestApplySummary(t *testing.T) {
	r := results(t)
	if got, want := ApplySummary(r, false, Style{}), "Apply complete! Resources: 1 added, 1 changed, 0 destroyed.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Steps[4].Status = apply.Done
	if got, want := ApplySummary(r, true, Style{}), "Destroy complete! Resources: 1 added, 1 changed, 0 destroyed, 1 applied again.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProgress holds the lines for people and the events for programs against what they say of the same run.
func TestProgress(t *testing.T) {
	var lines, events bytes.Buffer
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	for _, to := range []apply.Events{NewProgress(&lines, Style{}), NewEvents(&events, now)} {
		for _, r := range results(t).Steps {
			s := plan.Step{Addr: r.Addr, Host: r.Host, Action: r.Action}
			to.StepStarted(s)
			to.StepProgress(s, "<waits>")
			to.StillRunning(s, 70*time.Second)
			to.StepDone(r)
		}
	}
	golden(t, "progress", lines.String())
	golden(t, "events", events.String())
}

func sampleState(t *testing.T) *state.State {
	return &state.State{
		Instances: []*state.Instance{
			{Addr: instance(t, "port.a"), Host: "dut", Attributes: raw(portBefore), Sensitive: [][]string{{"key"}, {"flows", "1"}}, Undo: raw(`{"key":"hunter2"}`)},
			{Addr: instance(t, "port.b"), Status: state.InDoubt, Attributes: raw(`{"name":"b"}`)},
			{Addr: instance(t, "port.c"), Status: state.Incomplete, Attributes: raw(`{"name":"c"}`)},
			{Addr: instance(t, "port.c"), Deposed: true, Attributes: raw(`{"name":"c"}`)},
		},
		Outputs: map[string]state.Output{"a": {Value: raw(`["x",1]`)}, "s": {Value: raw(`"hunter2"`), Sensitive: true}},
	}
}

func TestState(t *testing.T) {
	text := State(sampleState(t), catalog(), Style{})
	golden(t, "state", text)
	if strings.Contains(text, "hunter2") || strings.Contains(text, "priority=2,") {
		t.Error("a secret is shown")
	}
	for _, s := range []*state.State{nil, {}} {
		if got := State(s, nil, Style{}); got != "The state is empty: nothing has been applied.\n" {
			t.Errorf("%q", got)
		}
	}
}

func TestRedact(t *testing.T) {
	st := sampleState(t)
	doc, err := state.Encode(Redact(st))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(doc, []byte("hunter2")) || bytes.Contains(doc, []byte("priority=2,")) || !bytes.Contains(doc, []byte("priority=1,")) {
		t.Errorf("%s", doc)
	}
	if !bytes.Contains(st.Instances[0].Attributes, []byte("hunter2")) {
		t.Error("the state itself has lost its secret")
	}
	p := RedactPlan(everything(t))
	for _, c := range p.Changes {
		if bytes.Contains(c.Before, []byte("hunter")) || bytes.Contains(c.After, []byte("hunter")) {
			t.Errorf("%s: %s %s", c.Addr, c.Before, c.After)
		}
	}
	if p.Outputs["secret"].After != nil || p.Outputs["new"].After == nil {
		t.Error("outputs are not redacted as they should be")
	}
}

func TestSchema(t *testing.T) {
	var list, one, md, doc bytes.Buffer
	cat := catalog()
	for _, err := range []error{SchemaList(&list, cat, Style{}), SchemaOf(&one, cat, "port", Style{}), SchemaMarkdown(&md, cat), SchemaJSON(&doc, cat)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "schema-list", list.String())
	golden(t, "schema-port", one.String())
	golden(t, "schema-markdown", md.String())
	golden(t, "schema-json", doc.String())
	if err := SchemaOf(&one, cat, "prot", Style{}); err == nil || !strings.Contains(err.Error(), `Did you mean "port"?`) {
		t.Error(err)
	}
}

func TestSnapshotDiff(t *testing.T) {
	before := map[string][]string{"dut": {"a", "b", "c"}, "gone": {"x"}}
	after := map[string][]string{"dut": {"a", "bb", "c", "d"}}
	got, same := SnapshotDiff(before, after, Style{})
	want := "- host.dut  b\n+ host.dut  bb\n+ host.dut  d\n- host.gone  x\nbefore and after: 4 lines differ\n"
	if d := cmp.Diff(want, got); d != "" || same {
		t.Error(d, same)
	}
	if got, same := SnapshotDiff(before, before, Style{}); got != "before and after: identical\n" || !same {
		t.Errorf("%q", got)
	}
}

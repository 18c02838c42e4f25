package view

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"plumb/stages/apply"
	"plumb/stages/plan"
)

// Progress prints a run's steps as plain lines, one each when it starts, goes on for long, and ends. Safe for concurrent use.
type Progress struct {
	mu sync.Mutex
	w  io.Writer
	st Style
}

// NewProgress prints to w.
func NewProgress(w io.Writer, st Style) *Progress { return &Progress{w: w, st: st} }

var _ apply.Events = (*Progress)(nil)

func (p *Progress) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// doing and did are the words for each action.
func doing(a plan.Action) string {
	switch a {
	case plan.Create:
		return "Creating"
	case plan.Update:
		return "Changing"
	case plan.Delete:
		return "Destroying"
	case plan.Reapply:
		return "Applying again"
	case plan.Read:
		return "Reading"
	case plan.Reboot:
		return "Rebooting"
	}
	return "Forgetting"
}

func did(a plan.Action) string {
	switch a {
	case plan.Create:
		return "Created"
	case plan.Update:
		return "Changed"
	case plan.Delete:
		return "Destroyed"
	case plan.Reapply:
		return "Applied again"
	case plan.Read:
		return "Read"
	case plan.Reboot:
		return "Rebooted"
	}
	return "Forgotten"
}

// StepStarted says what is being done.
func (p *Progress) StepStarted(s plan.Step) {
	if s.Action != plan.Forget {
		p.line("%s: %s...", p.st.paint(bold, s.Addr.String()), doing(s.Action))
	}
}

// StepProgress passes a provider's line on.
func (p *Progress) StepProgress(s plan.Step, line string) {
	p.line("%s: %s", p.st.paint(bold, s.Addr.String()), line)
}

// StillRunning says that a step goes on.
func (p *Progress) StillRunning(s plan.Step, elapsed time.Duration) {
	p.line("%s: still %s... [%s elapsed]", p.st.paint(bold, s.Addr.String()), strings.ToLower(doing(s.Action)), seconds(elapsed))
}

// StepDone says how a step ended.
func (p *Progress) StepDone(r apply.StepResult) {
	switch r.Status {
	case apply.Done:
		p.line("%s: %s after %s", p.st.paint(bold, r.Addr.String()), did(r.Action), seconds(r.Elapsed))
	case apply.Failed:
		p.line("%s: %s after %s", p.st.paint(bold, r.Addr.String()), p.st.paint(red, "failed"), seconds(r.Elapsed))
	case apply.Unfinished:
		p.line("%s: %s after %s", p.st.paint(bold, r.Addr.String()), p.st.paint(red, "cut off"), seconds(r.Elapsed))
	}
}

func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Bench prints a line of a benchmark.
func (p *Progress) Bench(benchmark, line string) { p.line("%s: %s", p.st.paint(bold, benchmark), line) }

// Events prints a run as JSON, one object a line: {"type", "@timestamp", ...}.
type Events struct {
	mu  sync.Mutex
	enc *json.Encoder
	now func() time.Time
}

// NewEvents prints to w. now stamps the events.
func NewEvents(w io.Writer, now func() time.Time) *Events {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &Events{enc: enc, now: now}
}

var _ apply.Events = (*Events)(nil)

// Event prints one event; fields are added to type and time.
func (e *Events) Event(typ string, fields map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]any{"type": typ, "@timestamp": e.now().UTC().Format(time.RFC3339Nano)}
	for k, v := range fields {
		out[k] = v
	}
	_ = e.enc.Encode(out) // a closed pipe must not stop an apply
}

func stepFields(s plan.Step, more map[string]any) map[string]any {
	out := map[string]any{"address": s.Addr.String(), "host": s.Host, "action": s.Action}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// StepStarted is type apply_start.
func (e *Events) StepStarted(s plan.Step) { e.Event("apply_start", stepFields(s, nil)) }

// StepProgress is type apply_progress with a message.
func (e *Events) StepProgress(s plan.Step, line string) {
	e.Event("apply_progress", stepFields(s, map[string]any{"message": line}))
}

// StillRunning is type apply_progress with the elapsed seconds.
func (e *Events) StillRunning(s plan.Step, elapsed time.Duration) {
	e.Event("apply_progress", stepFields(s, map[string]any{"elapsed_seconds": elapsed.Seconds()}))
}

// StepDone is type apply_complete, or apply_errored.
func (e *Events) StepDone(r apply.StepResult) {
	typ := "apply_complete"
	if r.Status != apply.Done {
		typ = "apply_errored"
	}
	e.Event(typ, map[string]any{"address": r.Addr.String(), "host": r.Host, "action": r.Action, "status": r.Status, "elapsed_seconds": r.Elapsed.Seconds()})
}

// Bench is type bench_progress.
func (e *Events) Bench(benchmark, line string) {
	e.Event("bench_progress", map[string]any{"benchmark": benchmark, "message": line})
}

// ApplySummary is the line at the end of an apply or destroy.
func ApplySummary(res *apply.Result, destroy bool, st Style) string {
	var add, chg, del, again int
	for i := range res.Steps {
		if res.Steps[i].Status != apply.Done {
			continue
		}
		switch res.Steps[i].Action {
		case plan.Create:
			add++
		case plan.Update:
			chg++
		case plan.Delete:
			del++
		case plan.Reapply:
			again++
		}
	}
	word := "Apply complete!"
	if destroy {
		word = "Destroy complete!"
	}
	s := fmt.Sprintf("%s Resources: %d added, %d changed, %d destroyed", st.paint(green, word), add, chg, del)
	if again > 0 {
		s += fmt.Sprintf(", %d applied again", again)
	}
	return s + ".\n"
}

// FailureTable is what a failed or interrupted apply ends with: what was done, what failed, what was skipped because of what, by host.
func FailureTable(res *apply.Result, st Style) string {
	var out strings.Builder
	byHost := map[string][]apply.StepResult{}
	rebooting := map[string]bool{} // addresses of hosts whose reboot did not work out
	for _, r := range res.Steps {
		byHost[r.Host] = append(byHost[r.Host], r)
		if r.Action == plan.Reboot && r.Status != apply.Done {
			rebooting[r.Addr.String()] = true
		}
	}
	counts := []string{}
	for _, s := range []struct {
		status apply.Status
		word   string
	}{{apply.Done, "done"}, {apply.Failed, "failed"}, {apply.Skipped, "skipped"}, {apply.NotStarted, "not started"}, {apply.Unfinished, "cut off"}} {
		if n := res.Count(s.status); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s.word))
		}
	}
	fmt.Fprintf(&out, "%s %s\n", st.paint(bold, "Not complete:"), strings.Join(counts, ", "))
	for _, h := range sortedKeys(byHost) {
		name := "host." + h
		if h == "" {
			name = "no host"
		}
		fmt.Fprintf(&out, "  %s\n", st.paint(bold, name))
		for _, r := range byHost[h] {
			word, color := string(r.Status), ""
			switch r.Status {
			case apply.Done:
				color = green
			case apply.Failed, apply.Unfinished:
				color = red
			case apply.Skipped:
				switch {
				case rebooting[r.Because]:
					word += ": the reboot of " + r.Because + " failed"
				case strings.HasPrefix(r.Because, "host."):
					word += ": " + r.Because + " cannot be reached"
				default:
					word += ": " + r.Because + " failed"
				}
			case apply.NotStarted:
				word = "not started"
			}
			fmt.Fprintf(&out, "    %-10s %s  %s\n", r.Action, r.Addr, st.paint(color, word))
		}
	}
	switch {
	case res.Cancelled:
		out.WriteString("What was cut off may be half done. The journal keeps it: the next apply finds out and finishes it, the next destroy takes it down.\n")
	case res.Stopped:
		out.WriteString("What was done is in the state. Apply again to go on, or destroy.\n")
	default:
		out.WriteString("What was done is in the state. Mend the cause and apply again, or destroy.\n")
	}
	return out.String()
}

package apply

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/stages/plan"
)

func TestFirstInterruptFinishesWhatRuns(t *testing.T) {
	r := newRig(t, standard()...)
	graceful, stop := context.WithCancel(t.Context())
	r.options.Graceful = graceful
	r.w.during = func(_ context.Context, name string) {
		if name == "a" {
			stop()
		}
	}
	res := r.apply(false)
	want := map[string]Status{"create knob.k": Done, "create box.a": Done, "create box.b": NotStarted, "create note.n": NotStarted, "read data.look.l": NotStarted}
	if d := cmp.Diff(want, statuses(res)); d != "" || !res.Stopped || res.Cancelled || res.Applied {
		t.Errorf("%s stopped %v, cancelled %v", d, res.Stopped, res.Cancelled)
	}
	if st, err := r.store.Read(); err != nil || len(st.Instances) != 2 {
		t.Errorf("state %+v, %v", st, err)
	}
	r.w.during, r.options.Graceful = nil, nil
	r.must(false)
	r.noChanges("data.look.l")
}

func TestSecondInterruptLeavesTheJournal(t *testing.T) {
	r := newRig(t, standard()...)
	before := r.w.snapshot()
	ctx, cancel := context.WithCancel(t.Context())
	r.w.during = func(_ context.Context, name string) {
		if name == "a" {
			cancel()
		}
	}
	s := r.open()
	res, err := r.run(ctx, s, r.b.plan(t, s, false))
	if err != nil {
		t.Fatal(err)
	}
	if got := statuses(res); got["create box.a"] != Unfinished || got["create box.b"] != Skipped || !res.Cancelled {
		t.Errorf("statuses %v, cancelled %v", got, res.Cancelled)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.store.JournalPath()); err != nil {
		t.Errorf("journal: %v", err)
	}
	r.w.during = nil
	s = r.open()
	if d := s.Folded.InDoubt; len(d) != 1 || d[0].String() != "box.a" {
		t.Errorf("in doubt: %v", d)
	}
	s.Close()
	r.must(true)
	if d := cmp.Diff(before, r.w.snapshot()); d != "" {
		t.Error(d)
	}
}

// recorder keeps what it was told.
type recorder struct {
	mu    sync.Mutex
	lines []string
	still chan string
}

func (r *recorder) add(s string) { r.mu.Lock(); r.lines = append(r.lines, s); r.mu.Unlock() }

func (r *recorder) StepStarted(s plan.Step)               { r.add("started " + s.Addr.String()) }
func (r *recorder) StepProgress(s plan.Step, line string) { r.add(s.Addr.String() + ": " + line) }
func (r *recorder) StepDone(s StepResult)                 { r.add(string(s.Status) + " " + s.Addr.String()) }
func (r *recorder) StillRunning(s plan.Step, d time.Duration) {
	r.still <- s.Addr.String() + " " + d.String()
}

func TestEvents(t *testing.T) {
	r := newRig(t, standard()[:2]...)
	rec := &recorder{still: make(chan string)}
	tick := make(chan time.Time)
	var mu sync.Mutex
	now := clock()
	r.options.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	r.options.Events, r.options.Heartbeat = rec, tick
	r.w.during = func(_ context.Context, name string) {
		if name != "a" {
			return
		}
		mu.Lock()
		now = now.Add(12 * time.Second)
		mu.Unlock()
		tick <- now
		if got := <-rec.still; got != "box.a 12s" {
			t.Errorf("still running: %s", got)
		}
	}
	r.must(false)
	want := []string{"started knob.k", "done knob.k", "started box.a", "box.a: making a", "done box.a"}
	if d := cmp.Diff(want, rec.lines); d != "" {
		t.Error(d)
	}
}

package search

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/dummy"
)

// sim is a model to search on: what is set, and the schema's defaults. Numbers are float64 or int, the rest strings and bools.
type sim map[string]any

// with is the model with more set.
func (m sim) with(more sim) sim {
	out := sim{}
	for _, part := range []sim{m, more} {
		for k, v := range part {
			out[k] = v
		}
	}
	return out
}

func (m sim) open(t testing.TB) providers.Generator {
	t.Helper()
	attrs := map[string]cty.Value{}
	for name, a := range (dummy.Generator{}).Schema().Block.Attributes {
		attrs[name] = a.Default
	}
	for name, v := range m {
		if _, ok := attrs[name]; !ok {
			t.Fatalf("the model has no %s", name)
		}
		switch v := v.(type) {
		case float64:
			attrs[name] = cty.NumberFloatVal(v)
		case int:
			attrs[name] = cty.NumberIntVal(int64(v))
		case string:
			attrs[name] = cty.StringVal(v)
		case bool:
			attrs[name] = cty.BoolVal(v)
		}
	}
	g, err := dummy.Generator{}.Open(context.Background(), providers.OpenRequest{Config: cty.ObjectVal(attrs)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run is a search driven to its end.
type run struct {
	done    []Seen
	figures map[string]Figure
	took    time.Duration // of the trials, simulated
	invalid int
}

// retrials is how often an INVALID trial is repeated, as the bench stage does.
const retrials = 3

// searched counts trials, taking those at the beginning that only tell the greatest load as one.
func searched(done []Seen) int {
	n := len(done)
	for i := 1; i < len(done) && done[i].Phase == "maximum"; i++ {
		n--
	}
	return n
}

// drive runs a search on a model and holds it to what every search must keep: it ends within bound trials, asks the same when asked again, and for any beginning of the
// run asks just what was asked then. directions is 1 or 2.
func drive(t testing.TB, s Search, m sim, directions, bound int) run {
	t.Helper()
	g := m.open(t)
	var r run
	var asks []Ask
	for {
		ask, more := s.Next(r.done)
		if again, same := s.Next(r.done); same != more || !reflect.DeepEqual(again, ask) {
			t.Fatalf("after %d trials Next says %+v and then %+v", len(r.done), ask, again)
		}
		if !more {
			break
		}
		if searched(r.done) >= bound {
			t.Fatalf("no end after %d trials; next would be %+v; figures %+v", bound, ask, s.Figures(r.done))
		}
		seen, ok := measure(t, g, ask, directions)
		for attempt := 0; !ok; attempt++ {
			r.invalid++
			if attempt == retrials {
				t.Fatalf("%d trials in a row were invalid: %+v", retrials, ask)
			}
			seen, ok = measure(t, g, ask, directions)
		}
		s.Judge(seen)
		s.Figures(r.done) // of a search that is not done
		asks, r.done, r.took = append(asks, ask), append(r.done, seen), r.took+seen.Effective
	}
	for i, want := range asks {
		if got, more := s.Next(r.done[:i:i]); !more || !reflect.DeepEqual(got, want) {
			t.Fatalf("resumed after %d trials it asks for %+v, not for %+v", i, got, want)
		}
	}
	r.figures = byName(t, s.Figures(r.done))
	for name, f := range r.figures {
		if f.Unfinished {
			t.Errorf("%s is unfinished though the search is done", name)
		}
	}
	return r
}

func byName(t testing.TB, figures []Figure) map[string]Figure {
	t.Helper()
	out := map[string]Figure{}
	for _, f := range figures {
		if _, twice := out[f.Name]; twice {
			t.Errorf("two figures are named %s", f.Name)
		}
		out[f.Name] = f
	}
	return out
}

// measure makes a trial and sums it up as the bench stage does; false: INVALID.
func measure(t testing.TB, g providers.Generator, a Ask, directions int) (Seen, bool) {
	t.Helper()
	req := providers.TrialRequest{Load: a.Load, Duration: a.Duration, Frames: a.Frames, Burst: a.Burst, Steps: a.Steps, Slice: a.Slice, DisturbAfter: a.After,
		Traffic: providers.Traffic{FrameSize: 64, Flows: 1, Bidirectional: directions == 2}}
	disturbed := 0
	if a.Disturb {
		req.Disturb = func(context.Context) error { disturbed++; return nil }
	}
	res, err := g.Trial(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if a.Disturb && disturbed != 1 {
		t.Fatalf("the device was reset %d times in a trial", disturbed)
	}
	s := Seen{Ask: a, Effective: res.Duration}
	valid := len(res.Health) == 0
	for i, d := range res.Directions {
		due := d.Sent
		if a.Load > 0 {
			due += d.Unsent
			if a.Frames == 0 && len(a.Steps) == 0 && float64(due) < 0.99*a.Load*a.Duration.Seconds()-1 {
				valid = false // the tester's fault
			}
		}
		valid = valid && d.Received <= d.Sent
		loss := 0.0
		if due > 0 {
			loss = float64(due-min(due, d.Received)) / float64(due)
		}
		s.Sent, s.Unsent, s.Received, s.Loss = s.Sent+d.Sent, s.Unsent+d.Unsent, s.Received+d.Received, max(s.Loss, loss)
		tx, rx := float64(d.Sent)/res.Duration.Seconds(), float64(d.Received)/res.Duration.Seconds()
		if i == 0 || tx < s.TxRate {
			s.TxRate = tx
		}
		if i == 0 || rx < s.RxRate {
			s.RxRate = rx
		}
		s.Latency = append(s.Latency, d.Latency)
		s.LossSlices = AddLoss(s.LossSlices, i == 0, d.LossSlices)
		s.LastLoss, s.Outage, s.OutageAt = later(s.LastLoss, d.LastLoss), later(s.Outage, d.Outage), later(s.OutageAt, d.OutageAt)
	}
	return s, valid
}

func later(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// must is the search that a constructor returns.
func must(t testing.TB) func(Search, error) Search {
	return func(s Search, err error) Search {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// loadsWithin checks that no trial was offered below the least or above the greatest load.
func loadsWithin(t testing.TB, done []Seen, least, greatest float64) {
	t.Helper()
	for i, s := range done {
		if s.Load != 0 && (s.Load < least || s.Load > greatest) {
			t.Errorf("trial %d is at %f; loads are %f to %f", i+1, s.Load, least, greatest)
		}
	}
}

// near checks that a figure is at most a width below the true value, and no further above than what sampling allows.
func near(t testing.TB, f Figure, truth, width, above float64) {
	t.Helper()
	if f.None != "" {
		t.Errorf("%s is none: %s; want %f", f.Name, f.None, truth)
		return
	}
	if f.Value < truth*(1-width)-1 || f.Value > truth*(1+above)+1 {
		t.Errorf("%s is %f, %.4f %% off the true %f; want at most %g %% below and %g %% above", f.Name, f.Value, 100*(f.Value/truth-1), truth, 100*width, 100*above)
	}
}

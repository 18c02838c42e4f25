package search

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// bounded is a search and after how many trials it must have ended, whatever comes back.
type bounded struct {
	search Search
	bound  int
}

// every is one search of each kind. given is the greatest load, or 0 for the searches to find it.
func every(t testing.TB, least, greatest, given float64) map[string]bounded {
	loads := Loads{Min: least, Max: given}
	steps := 2 * (2 + int(math.Log2(greatest+1))) // of a bisection down to single frames, to and fro
	wide := func(g Goal) Goal { g.Width = 0.02; return g }
	out := map[string]bounded{}
	add := func(name string, bound int) func(Search, error) {
		return func(s Search, err error) { out[name] = bounded{must(t)(s, err), bound} }
	}
	add("continuous", 1)(Continuous(ContinuousConfig{Load: greatest, Duration: time.Second}))
	add("latency", 1)(Latency(LatencyConfig{Load: greatest}))
	add("recovery", 2)(Recovery(RecoveryConfig{Throughput: greatest, Max: greatest}))
	add("reset", 1)(Reset(ResetConfig{Load: greatest}))
	add("loss rate", 12)(LossRate(LossRateConfig{Loads: loads}))
	add("soak", 10)(Soak(SoakConfig{}))
	add("throughput", 1+3*3*steps)(Throughput(ThroughputConfig{Loads: loads, Trial: time.Second, Retries: 2}))
	add("bursts", 1+2*steps)(Bursts(BurstsConfig{Loads: loads, Lengths: []int{16, 64}}))
	add("back to back", 200)(BackToBack(BackToBackConfig{Throughput: greatest, Max: 2 * greatest, MinStep: 1, Retries: 1}))
	add("mlr", 1500)(MLR(MLRConfig{Loads: loads, Goals: []Goal{wide(NDR()), wide(PDR()), wide(RFC2544())}}))
	add("plain", 21*2*steps)(Plain(PlainConfig{Loads: loads, Goals: []Goal{wide(NDR()), wide(PDR())}}))
	return out
}

// FuzzSearches answers every search with arbitrary outcomes: it must end, stay within the loads, and say the same twice.
func FuzzSearches(f *testing.F) {
	f.Add(1.0, 14_880_952.38, true, []byte{0, 255})
	f.Add(1000.0, 2e6, false, []byte{255, 0, 1, 128, 3, 7, 200})
	f.Add(5.0, 5.0, true, []byte{1, 0, 0, 1})
	f.Add(1.0, 30.0, false, []byte{9, 8, 7, 6, 5, 4, 3, 2, 1, 0})
	f.Add(0.0, 1e10, true, []byte{})
	f.Fuzz(func(t *testing.T, least, greatest float64, known bool, outcomes []byte) {
		if !(least >= 0 && least <= 1e9) || !(greatest >= 1 && greatest <= 1e11) || math.Floor(greatest) < math.Max(1, math.Ceil(least)) {
			t.Skip()
		}
		given := greatest
		if !known {
			given = 0
		}
		for name, s := range every(t, least, greatest, given) {
			answer(t, name, s.search, s.bound, least, greatest, outcomes)
		}
	})
}

// answer drives a search with bytes as outcomes, repeated: 0 is no loss, 255 all lost, and between the loss is spread over orders of magnitude.
func answer(t testing.TB, name string, s Search, bound int, least, greatest float64, outcomes []byte) int {
	var done []Seen
	for {
		ask, more := s.Next(done)
		if again, same := s.Next(done); same != more || !reflect.DeepEqual(again, ask) {
			t.Fatalf("%s: Next says %+v and then %+v", name, ask, again)
		}
		if !more {
			break
		}
		if searched(done) >= bound {
			t.Fatalf("%s: no end after %d trials; next %+v", name, bound, ask)
		}
		if ask.Load != 0 && (ask.Load > greatest || ask.Load < math.Min(least, greatest)) || ask.Load < 0 || ask.Duration < 0 || ask.Duration == 0 && ask.Frames < 1 {
			t.Fatalf("%s: trial %d is %+v; loads are %g to %g", name, len(done)+1, ask, least, greatest)
		}
		b := byte(0)
		if len(outcomes) > 0 {
			b = outcomes[len(done)%len(outcomes)]
		}
		loss := 0.0
		if b > 0 {
			loss = math.Pow(10, float64(b)/32-255.0/32)
		}
		seen := Seen{Ask: ask, Effective: ask.Duration, Sent: 1000, Loss: loss, TxRate: ask.Load}
		if ask.Load == 0 {
			seen.TxRate = greatest
		}
		seen.RxRate = seen.TxRate * (1 - loss)
		if loss > 0 {
			at := time.Duration(float64(ask.Duration) * loss)
			seen.LastLoss, seen.Outage = &at, &at
		}
		s.Judge(seen)
		done = append(done, seen)
	}
	for _, f := range s.Figures(done) {
		if f.Unfinished || f.Name == "" || f.Unit == "" || f.Label == "" {
			t.Fatalf("%s: figure of a search that is done: %+v", name, f)
		}
		for what, v := range map[string]float64{"value": f.Value, "lower": f.Lower, "upper": f.Upper} {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Fatalf("%s: %s's %s is %g", name, f.Name, what, v)
			}
		}
		if f.Upper != 0 && f.Lower > f.Upper {
			t.Fatalf("%s: %+v has its bounds the wrong way around", name, f)
		}
	}
	for _, f := range s.Figures(nil) {
		if !f.Unfinished && len(done) > 0 {
			t.Fatalf("%s: figure before the first trial: %+v", name, f)
		}
	}
	return len(done)
}

package search

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// MLRConfig is a search for several goals at once.
type MLRConfig struct {
	Loads
	// Goals are searched in one run; each trial counts for all of them. Goals may contradict one another: each is judged alone.
	Goals []Goal // at least one
	// WarmUp is a trial at the greatest load before the first that counts, thrown away; 0: none. Of an unknown greatest load, the maximum trial is the warm-up.
	WarmUp time.Duration
	// TimeLimit ends a search that takes longer, with the bounds that it has, both marked unfinished; 0: none. The search reads no clock: time is the sum of the trials'
	// effective durations and Overhead for each.
	TimeLimit time.Duration
	// Overhead is what a trial takes beside its stream: warm-up, settle, drain and counting.
	Overhead time.Duration
}

func (c MLRConfig) check() error {
	errs := []error{c.Loads.check()}
	if len(c.Goals) == 0 {
		errs = append(errs, errors.New("there is no goal to search for"))
	}
	seen := map[string]bool{}
	for _, g := range c.Goals {
		errs = append(errs, g.check())
		if seen[g.Name] {
			errs = append(errs, fmt.Errorf("two goals are named %s", g.Name))
		}
		seen[g.Name] = true
	}
	if c.WarmUp < 0 || c.TimeLimit < 0 || c.Overhead < 0 {
		errs = append(errs, fmt.Errorf("warm-up %s, time limit %s, overhead %s: none may be negative", c.WarmUp, c.TimeLimit, c.Overhead))
	}
	return errors.Join(errs...)
}

// MLR searches the greatest load that each goal stands, by draft-ietf-bmwg-mlrsearch-15 (Multiple Loss Ratio search). Each goal has two figures: one of its name, whose
// value is the relevant lower bound (the greatest load below the least failing one that passed), and NAME_conditional, the conditional throughput at that
// load. When the greatest load passes, the figure's Bound is ">="; when the least does not, it is None; both are irregular results by the draft.
func MLR(c MLRConfig) (Search, error) {
	s := mlr{c: c}
	if err := c.check(); err != nil {
		return s, err
	}
	s.unit = unit(c.Goals)
	for _, g := range c.Goals {
		s.chains = append(s.chains, chain(g, s.unit))
	}
	return s, nil
}

// mlr keeps what follows from its configuration alone.
type mlr struct {
	c      MLRConfig
	unit   float64    // of the logarithmic grid of loads
	chains [][]target // by goal
}

func (m mlr) Next(done []Seen) (Ask, bool) {
	v, ask := m.view(done)
	if ask != nil {
		return *ask, true
	}
	if m.c.TimeLimit > 0 && m.took(done) >= m.c.TimeLimit {
		return Ask{}, false
	}
	p, more := m.nominate(v)
	return Ask{Phase: "search", Load: p.load, Duration: p.target.Final}, more
}

// nominate is the trial to make: of those that the goals would make next, the one at the lowest load, then the longest, then the one with the greatest width. false: all are reached.
func (m mlr) nominate(v view) (best proposal, more bool) {
	for _, targets := range m.chains {
		p, wants := v.propose(targets)
		if !wants {
			continue
		}
		better := p.load < best.load ||
			p.load == best.load && (p.target.Final > best.target.Final || p.target.Final == best.target.Final && p.target.Width > best.target.Width)
		if !more || better {
			best, more = p, true
		}
	}
	return best, more
}

// took is the time of all trials.
func (m mlr) took(done []Seen) time.Duration {
	sum := time.Duration(0)
	for _, t := range done {
		sum += t.effective() + m.c.Overhead
	}
	return sum
}

// view is what the trials say; ask is set while the trials that come before have not been made.
func (m mlr) view(done []Seen) (view, *Ask) {
	limit, rest, ask := m.c.greatest(done)
	if ask != nil {
		ask.Duration = max(ask.Duration, m.c.WarmUp)
		return view{}, ask
	}
	v := view{grid: grid{least: m.c.least(), greatest: limit, unit: m.unit}, at: map[float64][]outcome{}}
	switch {
	case m.c.Max == 0:
		v.forwarded = done[0].RxRate
	case m.c.WarmUp > 0:
		if len(rest) == 0 {
			return view{}, &Ask{Phase: "warm_up", Load: limit, Duration: m.c.WarmUp}
		}
		rest = rest[1:]
	}
	for i, t := range rest {
		if i == 0 && v.forwarded == 0 {
			v.forwarded = t.Load * (1 - t.Loss)
		}
		v.at[t.Load] = append(v.at[t.Load], outcome{t.Duration, t.effective(), t.Loss})
	}
	return v, nil
}

// Judge names the goals that a trial alone would miss. A load is judged by all of its trials: see Classify.
func (m mlr) Judge(t Seen) string {
	if t.Phase != "search" {
		return ""
	}
	out := ""
	for _, g := range m.c.Goals {
		if t.Loss > g.Loss {
			if out != "" {
				out += ", "
			}
			out += fmt.Sprintf("%s %s", g.Name, percent(g.Loss))
		}
	}
	if out == "" {
		return ""
	}
	return fmt.Sprintf("lost %.4g %% of the frames sent; allowed are by %s", t.Loss*100, out)
}

func (m mlr) Figures(done []Seen) []Figure {
	v, ask := m.view(done)
	var out []Figure
	for i, g := range m.c.Goals {
		out = append(out, m.figures(g, m.chains[i], v, ask == nil)...)
	}
	return out
}

func (m mlr) figures(g Goal, targets []target, v view, began bool) []Figure {
	final := targets[len(targets)-1]
	f := Figure{Name: g.Name, Unit: "fps", Primary: true, Label: g.label(), Attributes: g.attributes()}
	ct := Figure{Name: g.Name + "_conditional", Unit: "fps", Label: "conditional throughput of " + f.Label, Attributes: f.Attributes}
	if !began {
		f.None, f.Unfinished = "no load was tried yet", true
		ct.None, ct.Unfinished = f.None, true
		return []Figure{f, ct}
	}
	lo, hi := v.bounds(final.Goal)
	f.Unfinished = !v.near(final, lo, hi)
	f.Value, f.Lower, f.Upper = lo, lo, hi
	kind := "regular"
	switch {
	case lo == v.greatest:
		f.Bound, kind = ">=", "irregular: the greatest load passes"
	case lo == 0 && !f.Unfinished:
		f.None, kind = "below the least load, "+fps(v.least), "irregular: the least load fails"
	case lo == 0:
		f.None, kind = "no load has passed yet", "unfinished"
		// Better than nothing: what an easier target knows.
		for i := len(targets) - 2; i >= 0 && f.Lower == 0; i-- {
			if f.Lower, f.Upper = v.bounds(targets[i].Goal); f.Lower > 0 {
				kind = fmt.Sprintf("unfinished: bounds by trials of %s, %s at a load", targets[i].Final, targets[i].Sum)
			}
		}
	case f.Unfinished:
		kind = "unfinished"
	}
	f.Attributes = append(f.Attributes, [2]string{"result", kind})
	ct.None, ct.Bound, ct.Unfinished = f.None, f.Bound, f.Unfinished
	if lo > 0 {
		ct.Value = conditional(g, lo, v.at[lo])
	}
	return []Figure{f, ct}
}

// label is what the goal's figure may be called.
func (g Goal) label() string {
	if g.Loss == 0 && g.Exceed == 0 && g.Final >= time.Minute {
		return "RFC 2544 throughput, by MLRsearch"
	}
	return fmt.Sprintf("%s by MLRsearch: loss up to %s, exceeded in up to %s of the time, trials of %s, %s at a load", g.Name, percent(g.Loss), percent(g.Exceed), g.Final, g.Sum)
}

func (g Goal) attributes() [][2]string {
	return [][2]string{
		{"goal loss ratio", percent(g.Loss)}, {"goal exceed ratio", percent(g.Exceed)}, {"goal width", percent(g.Width)},
		{"goal initial trial duration", or(g.Initial, g.Final).String()}, {"goal final trial duration", g.Final.String()}, {"goal duration sum", g.Sum.String()},
		{"preceding targets", fmt.Sprint(g.Preceding)},
	}
}

// target is a goal, or an easier version of one on the way to it.
type target struct {
	Goal
	units float64 // width on the grid, whole
}

// chain is the easier targets, then the goal: durations from initial to final and sums from initial to the goal's in equal ratios, each width twice the next.
func chain(g Goal, unit float64) []target {
	initial := or(g.Initial, g.Final)
	units := math.Floor(-math.Log1p(-g.Width) / unit)
	between := func(to time.Duration, share float64) time.Duration {
		d := time.Duration(float64(initial) * math.Pow(float64(to)/float64(initial), share))
		return max(initial, d.Round(time.Millisecond)) // fit to be read
	}
	var out []target
	for k := range g.Preceding {
		t, share, wider := g, float64(k)/float64(g.Preceding), math.Exp2(float64(g.Preceding-k))
		t.Final, t.Width = between(g.Final, share), -math.Expm1(math.Log1p(-g.Width)*wider)
		t.Sum = max(t.Final, between(g.Sum, share))
		out = append(out, target{t, units * wider})
	}
	return append(out, target{g, units})
}

// unit divides the width of every goal into whole parts, nearly: half a per cent is given away, so that rounding to whole frames does not make a step wider than the width, and
// of widths that do not divide one another at most 2 %.
func unit(goals []Goal) float64 {
	least := math.Inf(1)
	for _, g := range goals {
		least = math.Min(least, -math.Log1p(-g.Width))
	}
	for parts := 1.0; ; parts++ {
		u, good := least/parts*0.995, true
		for _, g := range goals {
			w := -math.Log1p(-g.Width)
			good = good && math.Floor(w/u)*u >= 0.98*w
		}
		if good {
			return u
		}
	}
}

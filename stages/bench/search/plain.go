package search

// PlainConfig is what Plain searches for.
type PlainConfig struct {
	Loads
	Goals []Goal // Initial and Preceding are not used
}

// Plain searches one goal after the other by bisection with full trials only, which is what MLRsearch is compared with: the same goals, judged by the same
// rule (Classify), to the same width. A goal's trials have its name as their phase and count for no other. Figures are as MLR's.
func Plain(c PlainConfig) (Search, error) {
	m := MLRConfig{Loads: c.Loads}
	for _, g := range c.Goals {
		g.Initial, g.Preceding = g.Final, 0
		m.Goals = append(m.Goals, g)
	}
	s, err := MLR(m)
	return plain{s.(mlr)}, err
}

type plain struct{ mlr }

// views are what each goal's trials say.
func (p plain) views(done []Seen) ([]view, *Ask) {
	limit, done, ask := p.c.greatest(done)
	if ask != nil {
		return make([]view, len(p.c.Goals)), ask
	}
	var out []view
	for _, g := range p.c.Goals {
		v := view{grid: grid{least: p.c.least(), greatest: limit}, at: map[float64][]outcome{}}
		for _, t := range done {
			if t.Phase == g.Name {
				v.at[t.Load] = append(v.at[t.Load], outcome{t.Duration, t.effective(), t.Loss})
			}
		}
		out = append(out, v)
	}
	return out, nil
}

func (p plain) Next(done []Seen) (Ask, bool) {
	views, ask := p.views(done)
	if ask != nil {
		return *ask, true
	}
	for i, g := range p.c.Goals {
		lo, hi := views[i].bounds(g)
		if load, more := bisect(lo, hi, views[i].least, views[i].greatest, within(g.Width)); more {
			return Ask{Phase: g.Name, Load: load, Duration: g.Final}, true
		}
	}
	return Ask{}, false
}

func (p plain) Judge(t Seen) string {
	for _, g := range p.c.Goals {
		if t.Phase == g.Name {
			return lossy(t, g.Loss)
		}
	}
	return ""
}

func (p plain) Figures(done []Seen) []Figure {
	views, ask := p.views(done)
	var out []Figure
	for i, g := range p.c.Goals {
		out = append(out, p.figures(g, p.chains[i], views[i], ask == nil)...)
	}
	return out
}

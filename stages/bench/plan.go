package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"plumb/stages/bench/search"
)

// plan is how one benchmark's method goes about each frame size and flow count.
type plan struct {
	needs   needs
	base    *search.ThroughputConfig // the search for the throughput before; nil: none is made. Its greatest load is filled in for each cell
	given   float64                  // the throughput where the configuration says it; 0: it does not
	maxLoss *float64                 // percent, for the report; nil: no goal
	target  string                   // address of what is reset, "" for nothing
	kind    string                   // of reset
	trials  int                      // of each repeat where that is known; 0: it depends on what is found
	streams []time.Duration          // lengths of the streams from short to long, or of a stream's parts; nil: they have a number of frames
	make    func(known) (search.Search, error)
}

// needs are what a method asks of the generator.
type needs struct{ rate, bursts, steps, outage, latency bool }

// known is what is known of a cell when its search begins.
type known struct {
	theoretical float64 // greatest frame rate of the link; 0: not known
	tester      float64 // greatest rate that the generator reached in the search before; 0: not known
	throughput  float64 // frames/s and direction, given or found; 0: not asked for
	found       bool    // found, rather than given
}

// limit is the smallest of the greatest rates that are known; 0: none is.
func limit(rates ...float64) float64 {
	out := 0.0
	for _, r := range rates {
		if r > 0 && (out == 0 || r < out) {
			out = r
		}
	}
	return out
}

// loadsOf reads the range of loads of a block. Max is without the link, which depends on the frame size.
func loadsOf(f *fields) search.Loads {
	return search.Loads{Min: f.load("min_load"), Max: f.load("max_load")}
}

// within limits the loads to what the link carries.
func within(l search.Loads, k known) search.Loads {
	l.Max = limit(l.Max, k.theoretical)
	return l
}

func throughputOf(f *fields) search.ThroughputConfig {
	return search.ThroughputConfig{Loads: loadsOf(f), Loss: f.share("loss"), Resolution: f.share("resolution"), Trial: f.duration("trial"), Final: f.duration("final"),
		Retries: int(f.num("retries"))}
}

// distinct sorts durations and leaves out doubles.
func distinct(d ...time.Duration) []time.Duration {
	slices.Sort(d)
	return slices.Compact(d)
}

// decodeMethod reads a method block; errors are kept in f.
func (s *settings) decodeMethod(f *fields, method string) plan {
	p := plan{needs: needs{rate: true}}
	switch method {
	case "continuous":
		s.continuous(f, &p)
	case "throughput":
		c := throughputOf(f)
		p.streams = distinct(cmp.Or(c.Trial, c.Final), c.Final)
		p.make = func(k known) (search.Search, error) {
			c := c
			c.Loads = within(c.Loads, k)
			return search.Throughput(c)
		}
	case "loss_rate":
		c := search.LossRateConfig{Loads: loadsOf(f), Step: f.share("step"), Duration: f.duration("trial"), MaxLoss: f.goal("max_loss")}
		p.streams = distinct(c.Duration)
		p.make = func(k known) (search.Search, error) {
			c := c
			c.Loads = within(c.Loads, k)
			return search.LossRate(c)
		}
	case "latency":
		c := search.LatencyConfig{Duration: f.duration("duration"), MaxLoss: f.goal("max_loss"), Repeats: s.repeat}
		p.needs.latency, p.streams = true, distinct(c.Duration)
		p.make = func(k known) (search.Search, error) {
			c := c
			c.Load, c.AtThroughput = k.throughput, k.found
			return search.Latency(c)
		}
	case "back_to_back":
		c := search.BackToBackConfig{MinStep: int(f.num("min_step")), MaxTime: f.duration("max_time"), Retries: int(f.num("retries"))}
		rate := f.load("max_load")
		p.needs.bursts = true
		p.make = func(k known) (search.Search, error) {
			c := c
			c.Throughput, c.Max = k.throughput, cmp.Or(limit(rate, k.theoretical), k.tester)
			if c.Max == 0 {
				return nil, errors.New("the greatest rate is not known, which bursts are sent at: set traffic.line_rate or max_load, or let the throughput be searched without search.max_load")
			}
			return search.BackToBack(c)
		}
	case "recovery":
		c := search.RecoveryConfig{Overload: f.share("overload"), OverloadTime: f.duration("overload_time"), Reduced: f.share("reduced"),
			ReducedTime: f.duration("reduced_time"), MaxTime: f.duration("max_time")}
		p.needs.steps, p.streams = true, []time.Duration{c.OverloadTime, c.ReducedTime}
		p.make = func(k known) (search.Search, error) {
			c := c
			c.Throughput, c.Max = k.throughput, limit(k.theoretical, k.tester)
			return search.Recovery(c)
		}
	case "reset":
		c := search.ResetConfig{Kind: f.str("kind"), Duration: f.duration("duration"), After: f.duration("after"), MaxTime: f.duration("max_time")}
		p.needs.outage, p.target, p.kind, p.streams = true, f.str("target"), c.Kind, distinct(c.Duration)
		p.make = func(k known) (search.Search, error) {
			c := c
			c.Load, c.AtThroughput = k.throughput, k.found
			return search.Reset(c)
		}
	case "burst":
		c := search.BurstsConfig{Loads: loadsOf(f), Lengths: f.ints("lengths"), Resolution: f.share("resolution"), Duration: f.duration("trial"), Loss: f.share("loss"), Retries: int(f.num("retries"))}
		p.needs.bursts, p.streams = true, distinct(c.Duration)
		p.make = func(k known) (search.Search, error) {
			c := c
			c.Loads = within(c.Loads, k)
			return search.Bursts(c)
		}
	case "soak":
		s.soak(f, &p)
	case "ndr_pdr":
		s.ndrPDR(f, &p)
	}
	if f.block.Blocks["search"] != nil && p.make != nil && (method != "soak" || f.isSet("share")) {
		in := f.inner("search")
		c := throughputOf(in)
		f.fail(in.err)
		if p.given = f.load("throughput"); p.given == 0 {
			p.base = &c
		}
	}
	if v := f.block.Attributes["max_loss"]; v != nil && f.isSet("max_loss") {
		percent := f.num("max_loss")
		p.maxLoss = &percent
	}
	return p
}

func (s *settings) continuous(f *fields, p *plan) {
	c := search.ContinuousConfig{Load: f.load("load"), Duration: f.duration("duration"), MaxLoss: f.goal("max_loss")}
	burst := int(f.num("burst"))
	if burst > 0 && c.Load == 0 {
		f.fail(errors.New("burst needs a load that it is kept on average to; at max, frames are back to back anyway"))
	}
	p.trials, p.needs, p.streams = 1, needs{rate: c.Load > 0, bursts: burst > 0}, distinct(c.Duration)
	p.make = func(known) (search.Search, error) {
		one, err := search.Continuous(c)
		return inBursts{one, burst}, err
	}
}

// inBursts sends the trials of a search in bursts.
type inBursts struct {
	search.Search
	frames int // 0: evenly spaced
}

func (b inBursts) Next(done []search.Seen) (search.Ask, bool) {
	ask, more := b.Search.Next(done)
	ask.Burst = b.frames
	return ask, more
}

func (s *settings) soak(f *fields, p *plan) {
	c := search.SoakConfig{Load: f.load("load"), Duration: f.duration("duration"), Slice: f.duration("slice"), MaxLoss: f.goal("max_loss"), Explained: f.flag("explained")}
	share := f.share("share")
	if c.Load > 0 && share > 0 {
		f.fail(errors.New("load and share exclude each other: the load is given, or a share of the throughput"))
	}
	if share == 0 && f.isSet("throughput") {
		f.fail(errors.New("throughput is of no use without share, which is a share of it"))
	}
	p.needs.rate, p.streams = c.Load > 0 || share > 0, distinct(min(c.Slice, c.Duration))
	p.make = func(k known) (search.Search, error) {
		c := c
		if share > 0 {
			c.Load = float64(int64(k.throughput * share))
		}
		return search.Soak(c)
	}
}

func (s *settings) ndrPDR(f *fields, p *plan) {
	c := search.MLRConfig{Loads: loadsOf(f), TimeLimit: f.duration("time_limit"), Overhead: s.settle + s.drain + s.rest}
	if !s.learnOnce {
		c.Overhead += s.warmUp
	}
	pdr := search.PDR()
	if pdr.Loss = f.share("pdr_loss"); pdr.Loss != 0.005 {
		pdr.Name = fmt.Sprintf("PDR %g %%", 100*pdr.Loss)
	}
	c.Goals = []search.Goal{search.NDR(), pdr}
	for i := range c.Goals {
		readGoal(f, &c.Goals[i])
	}
	if v := f.block1("goal"); !isAbsent(v) && v.LengthInt() > 0 {
		whole := c.Goals[0]
		c.Goals = nil
		for it := v.ElementIterator(); it.Next(); {
			name, e := it.Element()
			in := &fields{v: e, block: &f.block.Blocks["goal"].Block}
			f.fail(in.open("goal"))
			g := whole
			g.Name, g.Loss = name.AsString(), in.share("loss")
			readGoal(in, &g)
			f.fail(in.err)
			c.Goals = append(c.Goals, g)
		}
		slices.SortStableFunc(c.Goals, func(a, b search.Goal) int { return cmp.Compare(a.Loss, b.Loss) })
	}
	for _, g := range c.Goals {
		p.streams = append(p.streams, cmp.Or(g.Initial, g.Final), g.Final)
	}
	p.streams = distinct(p.streams...)
	p.make = func(k known) (search.Search, error) {
		c := c
		c.Loads = within(c.Loads, k)
		return search.MLR(c)
	}
}

// readGoal takes over what a block says about a goal. The initial trial is never longer than the final one.
func readGoal(f *fields, g *search.Goal) {
	if f.isSet("trial") {
		g.Final = f.duration("trial")
	}
	if f.isSet("sum") {
		g.Sum = f.duration("sum")
	}
	if f.isSet("initial") {
		g.Initial = f.duration("initial")
	} else {
		g.Initial = min(g.Initial, g.Final)
	}
	if f.isSet("exceed") {
		g.Exceed = f.share("exceed")
	}
	if f.isSet("width") {
		g.Width = f.share("width")
	}
	if f.isSet("preceding") {
		g.Preceding = int(f.num("preceding"))
	}
}

// try makes every search once, so that arguments that do not go together are refused before the first frame.
func (s *settings) try() error {
	for _, c := range s.cells() {
		const some = 1000 // frames/s, in place of what is found
		k := known{theoretical: s.theoretical(c.size), throughput: cmp.Or(s.plan.given, some)}
		if s.plan.base != nil {
			if _, err := s.baseFor(k); err != nil {
				return fmt.Errorf("search: %w", err)
			}
			if s.plan.base.Max == 0 && k.theoretical == 0 {
				k.tester = 2 * some // the search begins with a trial at maximum
			}
		}
		if _, err := s.plan.make(k); err != nil {
			return err
		}
	}
	return nil
}

// baseFor is the search for the throughput before the method itself.
func (s *settings) baseFor(k known) (search.Search, error) {
	c := *s.plan.base
	c.Loads = within(c.Loads, k)
	return search.Throughput(c)
}

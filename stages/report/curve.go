package report

import (
	"fmt"
	"math"
	"slices"

	"plumb/stages/bench"
)

// point of a curve. A failed one is drawn as a cross.
type point struct {
	x, y float64
	fail bool
	tip  string
}

// curveChart draws series of points over a quantity: the loss curve of RFC 2544 section 26.3, the trials of a search, latency by percentile.
// Series differ by colour, dash and the shape of their points.
type curveChart struct {
	title, note, xLabel, yLabel string
	names                       []string
	series                      [][]point
	joined                      bool     // points are joined by lines, in their order
	ticks                       []string // names at x = 0, 1, 2, ...; nil: x is a number
	xScale                      scale
	log                         bool    // y is logarithmic, from the lowest to the highest decade
	limit                       float64 // y goes no higher; 0: as high as needed
}

func (c curveChart) draw() chart {
	out := chart{Title: c.title, Note: c.note}
	failed := false
	for i, n := range c.names {
		if len(c.names) > 1 {
			out.Legend = append(out.Legend, legendItem{fmt.Sprintf("shape%d", i%6), n})
		}
		for _, p := range c.series[i] {
			failed = failed || p.fail
		}
	}
	if failed {
		out.Legend = append(out.Legend, legendItem{"cross", "FAIL"})
	}
	for _, w := range chartWidths {
		d := newDrawing("plot "+w.class, w.w, chartHeight, c.title, c.words())
		c.picture(d, w.w)
		out.Pictures = append(out.Pictures, d.done())
	}
	return out
}

func (c curveChart) picture(d *drawing, width float64) {
	left, right, bottom := float64(marginLeft), width-marginRight, float64(chartHeight-marginBottom)
	d.text("axis-name", "start", 0, 11, c.yLabel)
	d.text("axis-name", "middle", (left+right)/2, chartHeight-4, c.xLabel)
	y := c.vertical(d, left, right, bottom)
	var x func(float64) float64
	if c.ticks != nil {
		slot := (right - left) / float64(len(c.ticks))
		x = func(v float64) float64 { return left + slot*(v+0.5) }
		for i, t := range c.ticks {
			d.text("tick", "middle", x(float64(i)), bottom+16, t)
		}
	} else {
		top, step := nice(c.reach(func(p point) float64 { return p.x }) / c.xScale.by)
		x = func(v float64) float64 { return left + v/c.xScale.by/top*(right-left) }
		for v := 0.0; v <= top*1.0001; v += step {
			d.text("tick", "middle", left+v/top*(right-left), bottom+16, tick(label, v, top))
		}
	}
	for i, s := range c.series {
		class := fmt.Sprintf("line l%d", i%6)
		for n := 1; c.joined && n < len(s); n++ {
			d.line(class, x(s[n-1].x), y(s[n-1].y), x(s[n].x), y(s[n].y))
		}
		for _, p := range s {
			if p.fail {
				d.cross("cross", x(p.x), y(p.y), 4, p.tip)
			} else {
				d.shape(i%6, x(p.x), y(p.y), p.tip)
			}
		}
	}
}

// vertical draws the grid and gives the place of a value.
func (c curveChart) vertical(d *drawing, left, right, bottom float64) func(float64) float64 {
	high := c.reach(func(p point) float64 { return p.y })
	if c.log {
		low := high
		for _, s := range c.series {
			for _, p := range s {
				if p.y > 0 {
					low = min(low, p.y)
				}
			}
		}
		if high <= 0 {
			low, high = 1, 10
		}
		from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
		to = max(to, from+1)
		y := func(v float64) float64 {
			return bottom - (min(max(math.Log10(max(v, 1e-12)), from), to)-from)/(to-from)*(bottom-marginTop)
		}
		for e := from; e <= to; e++ {
			v := math.Pow10(int(e))
			class := "grid"
			if e == from {
				class = "base"
			}
			d.line(class, left, y(v), right, y(v))
			d.text("tick", "end", left-6, y(v)+4, decade(v))
		}
		return y
	}
	top, step := nice(high * 1.04)
	if c.limit > 0 && top > c.limit {
		top, step = c.limit, c.limit/5
	}
	y := func(v float64) float64 { return bottom - min(max(v, 0), top)/top*(bottom-marginTop) }
	for v := 0.0; v <= top*1.0001; v += step {
		class := "grid"
		if v == 0 {
			class = "base"
		}
		d.line(class, left, y(v), right, y(v))
		d.text("tick", "end", left-6, y(v)+4, tick(label, v, top))
	}
	return y
}

// decade writes a power of ten.
func decade(v float64) string {
	if v >= 1 {
		return grouped(int64(math.Round(v)))
	}
	return fmt.Sprintf("%g", v)
}

func (c curveChart) reach(of func(point) float64) float64 {
	top := 0.0
	for _, s := range c.series {
		for _, p := range s {
			top = max(top, of(p))
		}
	}
	return top
}

// words reads the chart out.
func (c curveChart) words() string {
	text, sep := "", ""
	for i, s := range c.series {
		for _, p := range s {
			if len(text) > 1500 {
				return text + " and more"
			}
			if p.tip != "" {
				text += sep + joined(" ", c.names[i]+":", p.tip)
				sep = "; "
			}
		}
	}
	return text
}

// lossCurve shows the loss of every trial that offered a load, by frame size (the graph of RFC 2544 section 26.3; of a search, its way). x is
// the share of the theoretical maximum where the link is known, else the rate.
func lossCurve(b *bench.Benchmark, gs []group) (chart, bool) {
	c := curveChart{title: "Loss by offered load", yLabel: "% lost", xLabel: "offered load", limit: 100, joined: b.Method == "loss_rate"}
	c.note = "Each mark is one trial."
	top, most := 0.0, 0.0
	several := severalFlows(gs)
	for _, g := range gs {
		var s []point
		line := bench.LineRateFPS(b.LineRate, g.FrameSize)
		for _, t := range g.trials {
			if t.Offered == 0 || len(t.Steps) > 0 || t.Frames > 0 {
				continue
			}
			p := point{x: perDirection(t, t.Offered), y: max(0, t.LossRatio*100), fail: t.Verdict == bench.Fail}
			p.tip = fmt.Sprintf("%s at %s for %s, %s lost, %s", g.label(several), rate(p.x), seconds(t.Duration), percentOf(t.LossRatio), t.Verdict)
			if b.LineRate > 0 {
				p.x = 100 * p.x / line
			}
			top, most = max(top, p.x), max(most, p.y)
			s = append(s, p)
		}
		if len(s) > 0 && len(c.series) < maxSeries {
			c.names, c.series = append(c.names, g.label(several)), append(c.series, s)
		}
	}
	if len(c.series) == 0 || top == 0 {
		return chart{}, false
	}
	if b.LineRate > 0 {
		c.xScale, c.xLabel = scale{1, "%"}, "offered load, % of the theoretical maximum of "+bits(b.LineRate)
	} else {
		c.xScale = rateScale(top)
		c.xLabel = "offered load in each direction, " + c.xScale.unit
	}
	return c.draw(), true
}

// latencyCurve shows the percentiles of the trials that stand for their frame size.
func latencyCurve(gs []group) (chart, bool) {
	c := curveChart{title: "Latency by percentile", note: "Of the trials of which the table below has the figures.", yLabel: "µs", xLabel: "percentile of the samples", joined: true, log: true,
		ticks: []string{"least", "50", "90", "99", "99.9", "greatest"}}
	several := severalFlows(gs)
	for _, g := range gs {
		l := typicalLatency(g)
		if l == nil || l.Samples == 0 || len(c.series) == maxSeries {
			continue
		}
		var s []point
		for i, ns := range []float64{l.Min, l.P50, l.P90, l.P99, l.P999, l.Max} {
			s = append(s, point{x: float64(i), y: ns / 1000, tip: c.ticks[i] + " " + seconds(ns/1e9)})
		}
		c.names, c.series = append(c.names, g.label(several)), append(c.series, s)
	}
	if len(c.series) == 0 {
		return chart{}, false
	}
	return c.draw(), true
}

// foundChart compares the primary rates by frame size with the theoretical maximum.
func foundChart(b *bench.Benchmark, gs []group) (chart, bool) {
	c := barChart{title: "What was found, by frame size", xLabel: sizeAxis}
	sizes, flows := frames(gs), flowCounts(gs)
	several := len(flows) > 1
	for _, s := range sizes {
		c.categories = append(c.categories, grouped(s))
	}
	top, repeated := 0.0, false
	for _, f := range b.Figures {
		if !f.Primary || f.Unit != "fps" || len(f.Values) == 0 {
			continue
		}
		name := f.Name
		if several {
			name += ", " + plural(f.Flows, "flow")
		}
		i := slices.Index(c.names, name)
		if i < 0 {
			if len(c.names) == maxSeries {
				continue
			}
			i = len(c.names)
			c.names, c.bars = append(c.names, name), append(c.bars, make([]bar, len(sizes)))
		}
		c.bars[i][slices.Index(sizes, f.FrameSize)] = bar{value: f.Median, low: f.Min, high: f.Max, ok: true}
		top, repeated = max(top, f.Max), repeated || len(f.Values) > 1
	}
	if len(c.names) == 0 {
		return chart{}, false
	}
	if repeated {
		c.note = "Bars are medians; whiskers reach from the least to the greatest repeat."
	}
	if b.LineRate > 0 {
		c.markName = "theoretical maximum of a link of " + bits(b.LineRate)
		for _, s := range sizes {
			m := bench.LineRateFPS(b.LineRate, s)
			c.marks, top = append(c.marks, m), max(top, m)
		}
	}
	return c.scaled(rateScale(top)).draw(), true
}

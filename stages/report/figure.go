package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plumb/stages/bench"
)

// figureView is one figure in words.
type figureView struct {
	Frame, Flows string
	Name         string // NDR, throughput, ...
	Label        string // what it may be called
	Value        string // the median over the repeats, or why there is none
	Interval     string // 95 % confidence interval of the mean
	Range        string // least and greatest repeat
	Spread       string // coefficient of variation
	Bounds       string // that the search ended with
	Share        string // of the theoretical maximum
	Repeats      string
	Trials, Took string
	Goal         string
	Primary      bool
	Marks        []badge // unsteady, unfinished
	Missing      string  // which repeats have no value, and why
	Benchmark    string  // in the overview: set in the first row
	Anchor       string
	Span         int
}

// figures lists what a method found, in the order of its frame sizes.
func figures(b *bench.Benchmark) []figureView {
	out := make([]figureView, 0, len(b.Figures))
	for _, f := range b.Figures {
		out = append(out, newFigure(b, f))
	}
	return out
}

func newFigure(b *bench.Benchmark, f bench.Figure) figureView {
	v := figureView{Frame: grouped(f.FrameSize), Flows: grouped(f.Flows), Name: strings.ReplaceAll(f.Name, "_", " "), Label: f.Label, Interval: "—", Range: "—", Spread: "—", Bounds: "—", Share: "—",
		Repeats: grouped(len(f.Values) + len(f.Nones)), Trials: grouped(f.Trials), Took: seconds(f.Took), Primary: f.Primary}
	if v.Label == "" {
		v.Label = v.Name
	}
	v.Goal = attributesText(f.Attributes)
	if f.Unfinished {
		v.Marks = append(v.Marks, badge{"invalid", "⚠", "unfinished"})
	}
	why := strings.Join(distinct(f.Nones), "; ")
	if len(f.Values) == 0 {
		v.Value, v.Missing = "none", why
		return v
	}
	v.Value = joined(" ", f.Bound, quantity(f.Median, f.Unit))
	if len(f.Nones) > 0 {
		v.Missing = fmt.Sprintf("%d of %s without a value: %s", len(f.Nones), plural(len(f.Values)+len(f.Nones), "repeat"), why)
	}
	if len(f.Values) > 1 {
		v.Interval, v.Range = between(f.Low, f.High, f.Unit), between(f.Min, f.Max, f.Unit)
		v.Spread = fmt.Sprintf("%.1f %%", f.CV*100)
	}
	if f.Unsteady {
		v.Marks = append(v.Marks, badge{"invalid", "≈", "unsteady"})
	}
	if f.Lower != 0 || f.Upper != 0 {
		v.Bounds = between(f.Lower, f.Upper, f.Unit)
		if f.Upper == 0 {
			v.Bounds = quantity(f.Lower, f.Unit) + " – none"
		}
	}
	if f.Unit == "fps" && b.LineRate > 0 {
		v.Share = percentOf(f.Median / bench.LineRateFPS(b.LineRate, f.FrameSize))
	}
	return v
}

// between writes a span of a figure, with the unit once where both ends have the same.
func between(low, high float64, unit string) string {
	a, b := quantity(low, unit), quantity(high, unit)
	if i := strings.LastIndexByte(a, ' '); i > 0 && strings.HasSuffix(b, a[i:]) {
		a = a[:i]
	}
	return a + " – " + b
}

// quantity writes a figure with its unit.
func quantity(v float64, unit string) string {
	switch unit {
	case "fps":
		return rate(v)
	case "s":
		return seconds(v)
	case "ns":
		return seconds(v / 1e9)
	case "ratio":
		return percentOf(v)
	}
	s := significant(v)
	if v == math.Trunc(v) || v >= 1000 {
		s = grouped(int64(math.Round(v)))
	}
	return joined(" ", s, unit)
}

// seconds writes a span of time in the unit that suits it.
func seconds(s float64) string {
	switch a := math.Abs(s); {
	case s == 0:
		return "0 s"
	case a < 1e-6:
		return significant(s*1e9) + " ns"
	case a < 1e-3:
		return significant(s*1e6) + " µs"
	case a < 1:
		return significant(s*1e3) + " ms"
	case a < 120:
		return significant(s) + " s"
	}
	return fmt.Sprintf("%d min %02d s", int(s)/60, int(s)%60)
}

func attributesText(attrs [][2]string) string {
	parts := make([]string, 0, len(attrs))
	for _, a := range attrs {
		parts = append(parts, a[0]+" "+a[1])
	}
	return strings.Join(parts, ", ")
}

func distinct(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	return slices.Compact(out)
}

// foundView is a table of figures, with the columns that not every one has.
type foundView struct {
	Rows                      []figureView
	Flows, Share, Range, Took bool
}

func newFound(rows []figureView) *foundView {
	if len(rows) == 0 {
		return nil
	}
	v := &foundView{Rows: rows}
	for _, r := range rows {
		v.Flows, v.Share, v.Range, v.Took = v.Flows || r.Flows != "1", v.Share || r.Share != "—", v.Range || r.Range != "—", v.Took || r.Took != "0 s"
	}
	return v
}

// foundGroups makes the groups of a benchmark that searched: the trial that stands for a frame size is the one nearest to what was found.
func foundGroups(b *bench.Benchmark) []group {
	var out []group
	for _, f := range b.Figures {
		if find(out, f.FrameSize, f.Flows) != nil {
			continue
		}
		g := group{Summary: bench.Summary{FrameSize: f.FrameSize, Flows: f.Flows}}
		for _, t := range b.Trials {
			switch {
			case t.FrameSize != f.FrameSize || t.Flows != f.Flows:
			case t.Verdict == bench.Invalid:
				g.Invalid++
			default:
				g.trials = append(g.trials, t)
			}
		}
		g.Trials, g.why = len(g.trials), "the nearest to what was found"
		g.typical = nearest(g.trials, headline(b, f.FrameSize, f.Flows))
		if t := g.typical; t != nil {
			g.RxMedian, g.RxMin, g.RxMax, g.TxMedian, g.LossMedian, g.BitrateMedian = t.RxRate, t.RxRate, t.RxRate, t.TxRate, t.LossRatio, t.RxBitrate
		}
		for _, s := range b.Summary {
			if s.FrameSize == f.FrameSize && s.Flows == f.Flows {
				g.Bottleneck = s.Bottleneck
			}
		}
		out = append(out, g)
	}
	return out
}

// headline is the first primary rate of a frame size; 0: there is none.
func headline(b *bench.Benchmark, size, flows int) float64 {
	for _, f := range b.Figures {
		if f.FrameSize == size && f.Flows == flows && f.Primary && f.Unit == "fps" && len(f.Values) > 0 {
			return f.Median
		}
	}
	return 0
}

// nearest is the trial whose offered load in each direction is nearest to a rate, the longest of several; without a rate the last one.
func nearest(ts []bench.Trial, fps float64) *bench.Trial {
	if len(ts) == 0 {
		return nil
	}
	if fps == 0 {
		return &ts[len(ts)-1]
	}
	best := slices.MinFunc(ts, func(a, b bench.Trial) int {
		far := func(t bench.Trial) float64 { return math.Abs(perDirection(t, t.Offered) - fps) }
		return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(b.Intended, a.Intended), cmp.Compare(a.LossRatio, b.LossRatio))
	})
	return &best
}

// perDirection is a figure that sums the directions, for one of them.
func perDirection(t bench.Trial, v float64) float64 { return v / float64(max(1, len(t.Directions))) }

// foundRows are the primary figures of a benchmark for the overview.
func foundRows(b *bench.Benchmark, anchor string) []figureView {
	var out []figureView
	for _, v := range figures(b) {
		if v.Primary {
			out = append(out, v)
		}
	}
	if len(out) > 0 {
		out[0].Benchmark, out[0].Anchor, out[0].Span = b.Addr, anchor, len(out)
	}
	return out
}

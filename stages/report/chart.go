package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// A chart is drawn twice, for a wide and a narrow page; the style sheet shows one. So text keeps its size on every screen.
var chartWidths = []struct {
	class string
	w     float64
}{{"wide", 500}, {"narrow", 336}}

const (
	chartHeight  = 256
	marginLeft   = 50
	marginRight  = 10
	marginTop    = 32
	marginBottom = 42
	maxBar       = 54
)

// chart is what one chart of the page shows, with its legend.
type chart struct {
	Title, Note string
	Legend      []legendItem
	Pictures    []template.HTML
}

type legendItem struct{ Class, Text string }

// Shape is the mark of a curve's series; "" for other items.
func (l legendItem) Shape() template.HTML {
	var n int
	if _, err := fmt.Sscanf(l.Class, "shape%d", &n); err != nil {
		return ""
	}
	d := &drawing{}
	d.shape(n, 8, 6, "")
	return template.HTML(d.b.String())
}

// bar is one value with the least and greatest of its repeats.
type bar struct {
	value, low, high float64
	ok               bool
}

// barChart compares series by category: frame sizes on the x axis (RFC 2544 section 26.1), a quantity from zero upwards on the y axis.
type barChart struct {
	title, note    string
	xLabel, yLabel string
	categories     []string
	names          []string
	bars           [][]bar   // by series, then category
	marks          []float64 // by category: a theoretical maximum; nil for none
	markName       string
	format         func(float64) string // of a value, in the axis' unit and without it
	full           func(float64) string // of a value, with its unit
	limit          float64              // the axis goes no higher; 0: as high as needed
}

func (c barChart) draw() chart {
	out := chart{Title: c.title, Note: c.note}
	if len(c.names) > 1 {
		for i, n := range c.names {
			out.Legend = append(out.Legend, legendItem{seriesClass(i), n})
		}
	}
	if c.marks != nil {
		out.Legend = append(out.Legend, legendItem{"mark", c.markName})
	}
	for _, w := range chartWidths {
		out.Pictures = append(out.Pictures, c.picture(w.class, w.w))
	}
	return out
}

func seriesClass(i int) string { return fmt.Sprintf("s%d", i%6) }

func (c barChart) picture(class string, width float64) template.HTML {
	highest := 0.0
	whiskers := false
	for _, s := range c.bars {
		for _, b := range s {
			if b.ok {
				highest = max(highest, b.value, b.high)
				whiskers = whiskers || b.high > b.low
			}
		}
	}
	for _, m := range c.marks {
		highest = max(highest, m)
	}
	// Room for the value above the highest bar.
	top, step := nice(highest * 1.04)
	if c.limit > 0 && top > c.limit {
		top, step = c.limit, c.limit/5
	}
	d := newDrawing("plot "+class, width, chartHeight, c.title, c.words())
	left, right, bottom := float64(marginLeft), width-marginRight, float64(chartHeight-marginBottom)
	y := func(v float64) float64 { return bottom - min(v, top)/top*(bottom-marginTop) }
	d.text("axis-name", "start", 0, 11, c.yLabel)
	d.text("axis-name", "middle", (left+right)/2, chartHeight-4, c.xLabel)
	for v := 0.0; v <= top*1.0001; v += step {
		d.line(map[bool]string{true: "base", false: "grid"}[v == 0], left, y(v), right, y(v))
		d.text("tick", "end", left-6, y(v)+4, tick(c.format, v, top))
	}
	slot := (right - left) / float64(max(1, len(c.categories)))
	group := min(slot*0.82, float64(len(c.names))*maxBar)
	each := group / float64(max(1, len(c.names)))
	for i, cat := range c.categories {
		middle := left + slot*(float64(i)+0.5)
		d.text("tick", "middle", middle, bottom+16, cat)
		for s := range c.names {
			b := c.bars[s][i]
			if !b.ok {
				d.text("tick", "middle", middle-group/2+each*(float64(s)+0.5), bottom-4, "n/a")
				continue
			}
			x, w := middle-group/2+each*float64(s)+each*0.08, each*0.84
			tip := fmt.Sprintf("%s, %s: %s", c.names[s], cat, c.full(b.value))
			if b.high > b.low {
				tip += fmt.Sprintf(" (%s to %s)", c.full(b.low), c.full(b.high))
			}
			d.rect("bar "+seriesClass(s), x, y(b.value), w, max(bottom-y(b.value), 0), tip)
			highest := y(b.value)
			if b.high > b.low {
				m, cap := x+w/2, min(w/4, 6)
				d.line("whisker", m, y(b.low), m, y(b.high))
				d.line("whisker", m-cap, y(b.low), m+cap, y(b.low))
				d.line("whisker", m-cap, y(b.high), m+cap, y(b.high))
				highest = y(b.high)
			}
			if label := c.format(b.value); textWidth(label) < each+1 {
				d.text("value", "middle", x+w/2, highest-5, label)
			}
		}
		if c.marks != nil && c.marks[i] > 0 {
			d.line("mark", middle-slot*0.44, y(c.marks[i]), middle+slot*0.44, y(c.marks[i]))
		}
	}
	return d.done()
}

// tick writes an axis label: with no more decimals than the axis needs.
func tick(format func(float64) string, v, top float64) string {
	s := format(v)
	if v == 0 {
		return "0"
	}
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// words reads the chart out.
func (c barChart) words() string {
	var parts []string
	for s, name := range c.names {
		for i, cat := range c.categories {
			if c.bars[s][i].ok {
				parts = append(parts, fmt.Sprintf("%s, %s: %s", name, cat, c.full(c.bars[s][i].value)))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// dot is one trial: how far its receive rate is from the median of its group, in percent.
type dot struct {
	off  float64
	fail bool
	tip  string
}

// spreadChart shows how far repeated trials lie apart.
func spreadChart(categories []string, dots [][]dot) chart {
	out := chart{Title: "Spread of the repeated trials", Note: "Each mark is one trial: how far its receive rate is from the median of its frame size.",
		Legend: []legendItem{{"dot", "PASS"}}}
	far, failed := 0.0, false
	for _, g := range dots {
		for _, d := range g {
			far, failed = max(far, math.Abs(d.off)), failed || d.fail
		}
	}
	if failed {
		out.Legend = append(out.Legend, legendItem{"cross", "FAIL"})
	}
	top, _ := nice(max(far, 0.1))
	for _, w := range chartWidths {
		d := newDrawing("plot "+w.class, w.w, chartHeight, out.Title, fmt.Sprintf("All trials lie within %.1f %% of their median", far))
		left, right, bottom := float64(marginLeft), w.w-marginRight, float64(chartHeight-marginBottom)
		mid := (bottom + marginTop) / 2
		y := func(v float64) float64 { return mid - v/top*(bottom-marginTop)/2 }
		d.text("axis-name", "start", 0, 11, "% from the median")
		d.text("axis-name", "middle", (left+right)/2, chartHeight-4, "frame size, bytes with FCS")
		for _, f := range []float64{-1, -0.5, 0, 0.5, 1} {
			class := "grid"
			if f == 0 {
				class = "base"
			}
			d.line(class, left, y(f*top), right, y(f*top))
			label := significant(math.Abs(f * top))
			if strings.Contains(label, ".") {
				label = strings.TrimRight(strings.TrimRight(label, "0"), ".")
			}
			switch {
			case f < 0:
				label = "−" + label
			case f > 0:
				label = "+" + label
			}
			d.text("tick", "end", left-6, y(f*top)+4, label)
		}
		slot := (right - left) / float64(max(1, len(categories)))
		for i, cat := range categories {
			middle := left + slot*(float64(i)+0.5)
			d.text("tick", "middle", middle, bottom+16, cat)
			gap := min(9, slot*0.7/float64(max(1, len(dots[i]))))
			for n, p := range dots[i] {
				x := middle + gap*(float64(n)-float64(len(dots[i])-1)/2)
				if p.fail {
					d.cross("cross", x, y(p.off), 4, p.tip)
				} else {
					d.circle("dot", x, y(p.off), 4, p.tip)
				}
			}
		}
		out.Pictures = append(out.Pictures, d.done())
	}
	return out
}

package report

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
)

// drawing writes an SVG picture element by element. Colours come from the page's style sheet by class, so that a picture follows light
// and dark; text is escaped here and nowhere else.
type drawing struct{ b strings.Builder }

// newDrawing begins a picture of w times h units. It is described for those who do not see it by title and text.
func newDrawing(class string, w, h float64, title, text string) *drawing {
	d := &drawing{}
	fmt.Fprintf(&d.b, `<svg class="%s" viewBox="0 0 %s %s" role="img" aria-label="%s">`, class, px(w), px(h), html.EscapeString(title+". "+text))
	return d
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

// rect draws a rectangle; tip is shown when a pointer rests on it.
func (d *drawing) rect(class string, x, y, w, h float64, tip string) {
	fmt.Fprintf(&d.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="1.5">%s</rect>`, class, px(x), px(y), px(w), px(h), tipOf(tip))
}

func (d *drawing) circle(class string, x, y, r float64, tip string) {
	fmt.Fprintf(&d.b, `<circle class="%s" cx="%s" cy="%s" r="%s">%s</circle>`, class, px(x), px(y), px(r), tipOf(tip))
}

// cross draws a diagonal cross around a point.
func (d *drawing) cross(class string, x, y, r float64, tip string) {
	fmt.Fprintf(&d.b, `<path class="%s" d="M%s %sL%s %sM%s %sL%s %s">%s</path>`, class, px(x-r), px(y-r), px(x+r), px(y+r), px(x-r), px(y+r), px(x+r), px(y-r), tipOf(tip))
}

// shape draws one of six marks that differ without colour: circle, square, diamond, triangle, turned triangle, ring.
func (d *drawing) shape(n int, x, y float64, tip string) {
	class := fmt.Sprintf("point l%d", n)
	path := func(points ...float64) {
		fmt.Fprintf(&d.b, `<path class="%s" d="M`, class)
		for i := 0; i < len(points); i += 2 {
			if i > 0 {
				d.b.WriteByte('L')
			}
			fmt.Fprintf(&d.b, "%s %s", px(x+points[i]), px(y+points[i+1]))
		}
		fmt.Fprintf(&d.b, `Z">%s</path>`, tipOf(tip))
	}
	switch n {
	case 0:
		d.circle(class, x, y, 3.6, tip)
	case 1:
		path(-3.3, -3.3, 3.3, -3.3, 3.3, 3.3, -3.3, 3.3)
	case 2:
		path(0, -4.8, 4.8, 0, 0, 4.8, -4.8, 0)
	case 3:
		path(0, -4.4, 4.4, 3.4, -4.4, 3.4)
	case 4:
		path(0, 4.4, 4.4, -3.4, -4.4, -3.4)
	default:
		d.circle(class+" ring", x, y, 3.6, tip)
	}
}

// text writes at a baseline point; anchor is start, middle or end.
func (d *drawing) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&d.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, px(x), px(y), html.EscapeString(s))
}

func (d *drawing) done() template.HTML { return template.HTML(d.b.String() + "</svg>") }

func tipOf(s string) string {
	if s == "" {
		return ""
	}
	return "<title>" + html.EscapeString(s) + "</title>"
}

// px writes a coordinate with at most one decimal, so that pictures are the same everywhere.
func px(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// textWidth is about how wide text of the charts' label size is, in units: enough to see whether it fits.
func textWidth(s string) float64 { return 6.1 * float64(len([]rune(s))) }

// meter is a bar that fills its place to a share of 0 to 1, with a hatched part after it.
func meter(share, hatched float64) template.HTML {
	clip := func(v float64) float64 { return 100 * min(1, max(0, v)) }
	var b strings.Builder
	b.WriteString(`<svg class="meter" width="100%" height="12" aria-hidden="true"><rect class="track" width="100%" height="12" rx="2"/>`)
	fmt.Fprintf(&b, `<rect class="fill" width="%.2f%%" height="12" rx="2"/>`, clip(share))
	if hatched > 0 {
		// At least a pixel or two, so that a small loss is seen at all.
		fmt.Fprintf(&b, `<rect class="gone" x="%.2f%%" width="%.2f%%" height="12"/>`, min(clip(share), 99.4), max(clip(hatched), 0.6))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

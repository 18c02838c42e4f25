package report

import (
	"fmt"
	"html/template"

	"plumb/stages/bench"
)

type ledgerView struct {
	Title, Sum string
	Open       bool
	Ways       []ledgerWay
	Check      string
}

type ledgerWay struct {
	Title string
	Hops  []hopView
}

type hopView struct {
	Name, Role string
	Lost       string // "" for nothing; else "1,234 lost (0.1 %)"
	Why        string
	Surplus    bool
	Bar        template.HTML
	Figure     string
	Share      string
}

func newLedger(g group, several, open bool) ledgerView {
	t := g.typical
	v := ledgerView{Title: g.label(several), Sum: lossPlaces(t), Open: open}
	if g.Trials > 1 {
		v.Title += fmt.Sprintf(" (%s of %s)", g.why, plural(g.Trials, "trial"))
	}
	var way *ledgerWay
	var sent, before uint64
	var lost int64
	for _, h := range t.Ledger {
		if h.Role == bench.Sender {
			title := ""
			if len(t.Directions) > 1 {
				title = []string{"Along the path", "Against the path"}[h.Direction&1]
			}
			v.Ways = append(v.Ways, ledgerWay{Title: title})
			way, sent, before = &v.Ways[len(v.Ways)-1], h.Out, h.Out
		} else {
			lost += h.Lost
		}
		if way == nil {
			continue // a ledger that does not begin with a sender is not one of ours
		}
		way.Hops = append(way.Hops, newHop(h, sent, before))
		before = h.Out
	}
	v.Check = fmt.Sprintf("%s sent = %s received + %s lost", grouped(t.Sent), grouped(t.Received), grouped(lost))
	return v
}

func newHop(h bench.Hop, sent, before uint64) hopView {
	share := func(n float64) float64 {
		if sent == 0 {
			return 0
		}
		return n / float64(sent)
	}
	v := hopView{Name: h.Name, Role: roleText(h.Role), Bar: meter(share(float64(h.Out)), share(float64(h.Lost))), Figure: grouped(h.Out), Share: percentOf(share(float64(h.Out)))}
	if h.Role == bench.Sender {
		return v
	}
	switch {
	case h.Lost < 0:
		v.Lost, v.Surplus = fmt.Sprintf("%s more than left the hop before", grouped(-h.Lost)), true
	case h.Lost > 0:
		v.Lost = fmt.Sprintf("%s lost (%s of the sent)", grouped(h.Lost), percentOf(share(float64(h.Lost))))
		if h.Role == bench.Through && h.In != h.Out && h.In != before {
			v.Lost += fmt.Sprintf(": %s on the way to it, %s inside", grouped(int64(before)-int64(h.In)), grouped(int64(h.In)-int64(h.Out)))
		} else if h.Role == bench.Through && h.In != h.Out {
			v.Lost += " inside"
		}
	}
	v.Why = causeText(h)
	return v
}

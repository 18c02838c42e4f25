package tally

import (
	"cmp"
	"slices"
)

// gapCount is how many of the longest gaps are kept.
const gapCount = 32

// gaps are the longest times in which a queue gave nothing.
type gaps struct {
	first, last uint64 // stamps; 0: nothing came yet
	least       uint64 // a shorter gap is not kept
	used        int
	longest     [gapCount]gap
}

type gap struct{ begin, end uint64 }

func (g gap) length() uint64 { return g.end - g.begin }

// record notes that something came. A clock that goes back is ignored until it has caught up.
func (g *gaps) record(now uint64) {
	if now <= g.last {
		return
	}
	if g.last == 0 {
		g.first = now
	} else if now-g.last > g.least {
		g.keep(gap{g.last, now})
	}
	g.last = now
}

func (g *gaps) keep(new gap) {
	if g.used < gapCount {
		g.longest[g.used] = new
		g.used++
	} else {
		shortest := 0
		for i := range g.longest {
			if g.longest[i].length() < g.longest[shortest].length() {
				shortest = i
			}
		}
		g.longest[shortest] = new
	}
	if g.used == gapCount {
		g.least = g.longest[0].length()
		for _, o := range g.longest {
			g.least = min(g.least, o.length())
		}
	}
}

// silence is all the time in which nothing came, as far as it was kept, in order; also that before the first and after the last frame.
func (g *gaps) silence() []gap {
	s := append([]gap{{0, g.first}, {g.last, ^uint64(0)}}, g.longest[:g.used]...)
	slices.SortFunc(s, func(a, b gap) int { return cmp.Compare(a.begin, b.begin) })
	return s
}

// outage is the longest time between two frames in which none of the queues gave anything. ok is false with less than two stamps, and where a
// longer one may have been among the gaps that were not kept: an outage lies in one gap of each queue, and all above least are kept.
func outage(ts []*Tally) (longest gap, ok bool) {
	silent := []gap{{0, ^uint64(0)}}
	first, last, least := ^uint64(0), uint64(0), uint64(1)
	for _, t := range ts {
		if t.gaps.last != 0 {
			silent = overlap(silent, t.gaps.silence())
			first, last, least = min(first, t.gaps.first), max(last, t.gaps.last), max(least, t.gaps.least)
		}
	}
	for _, g := range silent {
		if g.begin >= first && g.end <= last && g.length() > longest.length() {
			longest = g
		}
	}
	return longest, longest.length() >= least
}

// overlap is where both lists have a gap.
func overlap(a, b []gap) []gap {
	var both []gap
	for len(a) > 0 && len(b) > 0 {
		if g := (gap{max(a[0].begin, b[0].begin), min(a[0].end, b[0].end)}); g.begin < g.end {
			both = append(both, g)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

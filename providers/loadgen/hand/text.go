package hand

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is the report as a table for people: one column for each direction.
func (r *Report) Text() string {
	var b strings.Builder
	for i, p := range r.Ports {
		fmt.Fprintf(&b, "Port %d: %s, %s, %s\n", i, p.Port, p.MAC, p.Kind)
	}
	how := ""
	if r.Interrupted {
		how = ", interrupted"
	}
	fmt.Fprintf(&b, "%d bytes with FCS, %.3f s%s\n\n", r.FrameSize, r.Seconds, how)
	b.WriteString(table(r.rows()))
	b.WriteByte('\n')
	if r.Behind > 0 {
		fmt.Fprintf(&b, "The tester stayed %s behind the rate, because its threads did not get to run.\n", plural(r.Behind, "frame"))
	}
	fmt.Fprintf(&b, "Longest stop of a thread: %s us\n", micros(r.LongestStop))
	if r.LinkChanges > 0 {
		fmt.Fprintf(&b, "The link of a port changed %s.\n", plural(r.LinkChanges, "time"))
	}
	for _, h := range r.Health {
		fmt.Fprintf(&b, "Not to be trusted: %s\n", h)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	return b.String()
}

// rows are those of the table: what, unit, and a cell for each direction.
func (r *Report) rows() [][]string {
	var rows [][]string
	add := func(what, unit string, cell func(OneWay) string) {
		row := []string{what, unit}
		for _, d := range r.Directions {
			row = append(row, cell(d))
		}
		rows = append(rows, row)
	}
	add("ports", "", func(d OneWay) string { return fmt.Sprintf("%d -> %d", d.From, d.To) })
	add("offered", "frames/s", func(d OneWay) string {
		if d.Offered == 0 {
			return "maximum"
		}
		return fixed(d.Offered)
	})
	count := func(what string, of func(OneWay) uint64) {
		add(what, "frames", func(d OneWay) string { return whole(of(d)) })
	}
	count("sent", func(d OneWay) uint64 { return d.Sent })
	count("not sent", func(d OneWay) uint64 { return d.Unsent })
	count("received", func(d OneWay) uint64 { return d.Received })
	count("lost", func(d OneWay) uint64 { return d.Lost })
	add("loss", "%", func(d OneWay) string { return strconv.FormatFloat(100*d.LossRatio, 'g', 4, 64) })
	count("duplicated", func(d OneWay) uint64 { return d.Duplicated })
	count("out of order", func(d OneWay) uint64 { return d.Reordered })
	count("surplus", func(d OneWay) uint64 { return d.Surplus })
	count("dropped by the tester", func(d OneWay) uint64 { return d.RxDrops })
	add("sent", "frames/s", func(d OneWay) string { return fixed(d.TxRate) })
	add("received", "frames/s", func(d OneWay) string { return fixed(d.RxRate) })
	add("sent, layer 1", "Mbit/s", func(d OneWay) string { return strconv.FormatFloat(d.TxL1/1e6, 'f', 3, 64) })
	add("received, layer 1", "Mbit/s", func(d OneWay) string { return strconv.FormatFloat(d.RxL1/1e6, 'f', 3, 64) })
	latency := func(what string, of func(*Latency) float64) {
		add(what, "us", func(d OneWay) string {
			if d.Latency == nil {
				return "-"
			}
			return micros(of(d.Latency))
		})
	}
	add("latency samples", "frames", func(d OneWay) string {
		if d.Latency == nil {
			return "0"
		}
		return whole(d.Latency.Samples)
	})
	latency("latency min", func(l *Latency) float64 { return l.Min })
	latency("latency p50", func(l *Latency) float64 { return l.P50 })
	latency("latency p90", func(l *Latency) float64 { return l.P90 })
	latency("latency p99", func(l *Latency) float64 { return l.P99 })
	latency("latency p99.9", func(l *Latency) float64 { return l.P999 })
	latency("latency max", func(l *Latency) float64 { return l.Max })
	latency("latency mean", func(l *Latency) float64 { return l.Mean })
	latency("jitter", func(l *Latency) float64 { return l.Jitter })
	latency("PDV", func(l *Latency) float64 { return l.PDV })
	add("IPDV p0.1 to p99.9", "us", func(d OneWay) string {
		if d.Latency == nil || d.Latency.IPDV == nil {
			return "-"
		}
		return micros(d.Latency.IPDV.P001) + " to " + micros(d.Latency.IPDV.P999)
	})
	return rows
}

// table sets rows in columns: the first two to the left, the others to the right.
func table(rows [][]string) string {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		line := ""
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i < 2 {
				line += c + pad + "  "
			} else {
				line += pad + c + "   "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Live is a line about one second: what was added between two totals.
func Live(second int, before, now Totals, seconds float64) string {
	return fmt.Sprintf("%4d s   sent %s frames/s   received %s frames/s", second, fixed(float64(now.Sent-before.Sent)/seconds), fixed(float64(now.Received-before.Received)/seconds))
}

// whole writes a number with commas between thousands.
func whole(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func fixed(v float64) string {
	if v >= 0 && v < 100 && v != float64(uint64(v)) {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return whole(uint64(v + 0.5))
}

func micros(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func plural[N int | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return whole(uint64(n)) + " " + what + "s"
}

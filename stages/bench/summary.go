package bench

import (
	"fmt"
	"strings"
)

// busyLimit is the share of a PMD's cycles in percent above which it is called the bottleneck: what practitioners watch for in
// pmd-rxq-show and pmd-stats-show.
const busyLimit = 90

// summarize makes one line for each frame size and flow count, in the order of the trials. Of trials that a search chose the loads of it has no rates.
// unsteady is the coefficient of variation above which a line is marked.
func summarize(trials []Trial, searched bool, unsteady float64) []Summary {
	type key struct{ size, flows int }
	var order []key
	groups := map[key][]Trial{}
	for _, t := range trials {
		k := key{t.FrameSize, t.Flows}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], t)
	}
	var out []Summary
	for _, k := range order {
		s := Summary{FrameSize: k.size, Flows: k.flows}
		var rx, tx, loss, bits []float64
		var counted []Trial
		for _, t := range groups[k] {
			if t.Verdict == Invalid {
				s.Invalid++
				continue
			}
			counted = append(counted, t)
			rx, tx, loss, bits = append(rx, t.RxRate), append(tx, t.TxRate), append(loss, t.LossRatio), append(bits, t.RxBitrate)
		}
		s.Trials = len(counted)
		if s.Trials > 0 {
			s.Bottleneck = bottleneck(counted)
		}
		if s.Trials > 0 && !searched {
			of := spreadOf(rx)
			s.RxMedian, s.RxMin, s.RxMax, s.RxCV, s.RxLow, s.RxHigh = of.median, of.min, of.max, of.cv, of.low, of.high
			s.TxMedian, s.LossMedian, s.BitrateMedian = median(tx), median(loss), median(bits)
			s.Unsteady = s.Trials > 1 && of.cv > unsteady
		}
		out = append(out, s)
	}
	return out
}

// bottleneck names the busiest PMD when it is over the limit. Busy is the median over the trials.
func bottleneck(trials []Trial) string {
	busy := map[string][]float64{}
	hosts := map[string]bool{}
	for _, t := range trials {
		for _, o := range t.Observations {
			if o.Kind != "pmd" {
				continue
			}
			for _, m := range o.Metrics {
				if m.Name == "busy" && m.Unit == "%" {
					hosts[o.Host] = true
					busy[o.Host+"\x00"+o.Subject] = append(busy[o.Host+"\x00"+o.Subject], m.Value)
				}
			}
		}
	}
	best, most := "", float64(busyLimit)
	for _, k := range sortedKeys(busy) {
		if b := median(busy[k]); b > most {
			best, most = k, b
		}
	}
	if best == "" {
		return ""
	}
	host, subject, _ := strings.Cut(best, "\x00")
	where := ""
	if len(hosts) > 1 {
		where = " on " + host
	}
	return fmt.Sprintf("PMD %s%s busy %.0f %%", strings.TrimPrefix(subject, "pmd "), where, most)
}

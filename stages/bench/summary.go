package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// busyLimit is the share of a PMD's cycles in percent above which it is called the bottleneck: what practitioners watch for in
// pmd-rxq-show and pmd-stats-show.
const busyLimit = 90

// summarize makes one line for each frame size and flow count, in the order of the trials.
func summarize(trials []Trial) []Summary {
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
			s.RxMedian, s.RxMin, s.RxMax, s.RxCV = median(rx), slices.Min(rx), slices.Max(rx), variation(rx)
			s.TxMedian, s.LossMedian, s.BitrateMedian = median(tx), median(loss), median(bits)
			s.Bottleneck = bottleneck(counted)
		}
		out = append(out, s)
	}
	return out
}

// median of at least one value; of an even number the mean of the middle two.
func median(in []float64) float64 {
	v := slices.Sorted(slices.Values(in))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// variation is the sample standard deviation over the mean; 0 with fewer than two values or a mean of 0.
func variation(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	var sum, squares float64
	for _, x := range v {
		sum += x
	}
	mean := sum / float64(len(v))
	if mean == 0 {
		return 0
	}
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return math.Sqrt(squares/float64(len(v)-1)) / mean
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

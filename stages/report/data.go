package report

import (
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"

	"plumb/stages/bench"
)

// JSON is the whole run in the form of run.json.
func JSON(run *bench.Run) ([]byte, error) {
	data, err := json.MarshalIndent(run, "", "  ")
	return append(data, '\n'), err
}

// FiguresCSV is one row for each figure that a search found, with units in a column of their own; values of the repeats are joined by spaces.
func FiguresCSV(run *bench.Run) []byte {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"run", "benchmark", "method", "frame_size_bytes", "flows", "figure", "label", "unit", "bound", "median", "mean", "min", "max", "stddev", "cv", "ci95_low", "ci95_high", "lower_bound", "upper_bound",
		"values", "none", "unsteady", "unfinished", "trials", "took_s", "goal"})
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	for _, bm := range run.Benchmarks {
		for _, g := range bm.Figures {
			row := []string{run.ID, bm.Addr, bm.Method, strconv.Itoa(g.FrameSize), strconv.Itoa(g.Flows), g.Name, g.Label, g.Unit, g.Bound}
			if len(g.Values) > 0 {
				row = append(row, f(g.Median), f(g.Mean), f(g.Min), f(g.Max), f(g.StdDev), f(g.CV), f(g.Low), f(g.High), f(g.Lower), f(g.Upper))
			} else {
				row = append(row, "", "", "", "", "", "", "", "", "", "")
			}
			var values []string
			for _, v := range g.Values {
				values = append(values, f(v))
			}
			w.Write(append(row, strings.Join(values, " "), strings.Join(g.Nones, "; "), strconv.FormatBool(g.Unsteady), strconv.FormatBool(g.Unfinished),
				strconv.Itoa(g.Trials), f(g.Took), attributesText(g.Attributes)))
		}
	}
	w.Flush() // a strings.Builder takes everything
	return []byte(b.String())
}

// CSV is one row for each benchmark, frame size and flow count. Units are in the names; where no trial counted the figures are empty.
// line_rate_fps is the theoretical maximum of the configured link. Every single trial is in the results folder's trials.csv.
func CSV(run *bench.Run) []byte {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"run", "benchmark", "method", "frame_size_bytes", "flows", "trials", "invalid", "tx_fps_median", "rx_fps_median", "rx_fps_min", "rx_fps_max",
		"rx_fps_cv", "rx_l1_bps_median", "loss_ratio_median", "line_rate_fps", "bottleneck"})
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	for _, bm := range run.Benchmarks {
		for _, s := range bm.Summary {
			row := []string{run.ID, bm.Addr, bm.Method, strconv.Itoa(s.FrameSize), strconv.Itoa(s.Flows), strconv.Itoa(s.Trials), strconv.Itoa(s.Invalid)}
			if s.Trials > 0 {
				row = append(row, f(s.TxMedian), f(s.RxMedian), f(s.RxMin), f(s.RxMax), f(s.RxCV), f(s.BitrateMedian), f(s.LossMedian))
			} else {
				row = append(row, "", "", "", "", "", "", "")
			}
			line := ""
			if bm.LineRate > 0 {
				line = f(bench.LineRateFPS(bm.LineRate, s.FrameSize))
			}
			w.Write(append(row, line, s.Bottleneck))
		}
	}
	w.Flush() // a strings.Builder takes everything
	return []byte(b.String())
}

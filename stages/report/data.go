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

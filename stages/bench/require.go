package bench

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// Self is what the require blocks of a benchmark see as self:
//
//	self.trials   list of objects, the trials that counted, in order: frame_size, flows, repeat, verdict, duration_s, offered_fps, sent,
//	              unsent, received, tx_fps, rx_fps, rx_l1_bps, loss_ratio
//	self.summary  list of objects, one for each frame size and flow count: frame_size, flows, trials, invalid, rx_fps_median, rx_fps_min,
//	              rx_fps_max, rx_fps_cv, tx_fps_median, loss_ratio_median, rx_l1_bps_median
//	self.at       the same objects by "SIZE/FLOWS": self.at["64/1"].rx_fps_median
//	self.figures  list of objects, what a search found: frame_size, flows, name, unit, median, mean, min, max, cv, ci95_low, ci95_high, lower_bound,
//	              upper_bound, values (a list), none (reasons of repeats without a value), unsteady, unfinished
//	self.found    the same objects by "NAME/SIZE/FLOWS": self.found["NDR/64/1"].median
//	self.invalid  how many trials did not count
//
// Names, units and meaning are those of run.json.
func (b *Benchmark) Self() cty.Value {
	num, in := cty.NumberFloatVal, func(n int) cty.Value { return cty.NumberIntVal(int64(n)) }
	trialType := cty.Object(map[string]cty.Type{"frame_size": cty.Number, "flows": cty.Number, "repeat": cty.Number, "verdict": cty.String,
		"duration_s": cty.Number, "offered_fps": cty.Number, "sent": cty.Number, "unsent": cty.Number, "received": cty.Number, "tx_fps": cty.Number,
		"rx_fps": cty.Number, "rx_l1_bps": cty.Number, "loss_ratio": cty.Number})
	summaryType := cty.Object(map[string]cty.Type{"frame_size": cty.Number, "flows": cty.Number, "trials": cty.Number, "invalid": cty.Number,
		"rx_fps_median": cty.Number, "rx_fps_min": cty.Number, "rx_fps_max": cty.Number, "rx_fps_cv": cty.Number, "tx_fps_median": cty.Number,
		"loss_ratio_median": cty.Number, "rx_l1_bps_median": cty.Number})
	trials, summary, at, invalid := cty.ListValEmpty(trialType), cty.ListValEmpty(summaryType), cty.MapValEmpty(summaryType), 0
	var ts, ss []cty.Value
	for _, t := range b.Trials {
		if t.Verdict == Invalid {
			invalid++
			continue
		}
		ts = append(ts, cty.ObjectVal(map[string]cty.Value{"frame_size": in(t.FrameSize), "flows": in(t.Flows), "repeat": in(t.Repeat),
			"verdict": cty.StringVal(string(t.Verdict)), "duration_s": num(t.Duration), "offered_fps": num(t.Offered), "sent": cty.NumberUIntVal(t.Sent),
			"unsent": cty.NumberUIntVal(t.Unsent), "received": cty.NumberUIntVal(t.Received), "tx_fps": num(t.TxRate), "rx_fps": num(t.RxRate),
			"rx_l1_bps": num(t.RxBitrate), "loss_ratio": num(t.LossRatio)}))
	}
	byKey := map[string]cty.Value{}
	for _, s := range b.Summary {
		v := cty.ObjectVal(map[string]cty.Value{"frame_size": in(s.FrameSize), "flows": in(s.Flows), "trials": in(s.Trials), "invalid": in(s.Invalid),
			"rx_fps_median": num(s.RxMedian), "rx_fps_min": num(s.RxMin), "rx_fps_max": num(s.RxMax), "rx_fps_cv": num(s.RxCV), "tx_fps_median": num(s.TxMedian),
			"loss_ratio_median": num(s.LossMedian), "rx_l1_bps_median": num(s.BitrateMedian)})
		ss = append(ss, v)
		byKey[strconv.Itoa(s.FrameSize)+"/"+strconv.Itoa(s.Flows)] = v
	}
	figures, found := b.selfFigures()
	if len(ts) > 0 {
		trials = cty.ListVal(ts)
	}
	if len(ss) > 0 {
		summary, at = cty.ListVal(ss), cty.MapVal(byKey)
	}
	return cty.ObjectVal(map[string]cty.Value{"trials": trials, "summary": summary, "at": at, "figures": figures, "found": found, "invalid": in(invalid)})
}

func (b *Benchmark) selfFigures() (list, byName cty.Value) {
	num, in := cty.NumberFloatVal, func(n int) cty.Value { return cty.NumberIntVal(int64(n)) }
	numbers, texts := cty.ListValEmpty(cty.Number), cty.ListValEmpty(cty.String)
	object := func(f Figure) cty.Value {
		values, none := numbers, texts
		if len(f.Values) > 0 {
			var vs []cty.Value
			for _, v := range f.Values {
				vs = append(vs, num(v))
			}
			values = cty.ListVal(vs)
		}
		if len(f.Nones) > 0 {
			var ns []cty.Value
			for _, n := range f.Nones {
				ns = append(ns, cty.StringVal(n))
			}
			none = cty.ListVal(ns)
		}
		return cty.ObjectVal(map[string]cty.Value{"frame_size": in(f.FrameSize), "flows": in(f.Flows), "name": cty.StringVal(f.Name), "unit": cty.StringVal(f.Unit),
			"median": num(f.Median), "mean": num(f.Mean), "min": num(f.Min), "max": num(f.Max), "cv": num(f.CV), "ci95_low": num(f.Low), "ci95_high": num(f.High),
			"lower_bound": num(f.Lower), "upper_bound": num(f.Upper), "values": values, "none": none,
			"unsteady": cty.BoolVal(f.Unsteady), "unfinished": cty.BoolVal(f.Unfinished)})
	}
	ty := object(Figure{}).Type()
	list, byName = cty.ListValEmpty(ty), cty.MapValEmpty(ty)
	var all []cty.Value
	named := map[string]cty.Value{}
	for _, f := range b.Figures {
		v := object(f)
		all = append(all, v)
		named[fmt.Sprintf("%s/%d/%d", f.Name, f.FrameSize, f.Flows)] = v
	}
	if len(all) > 0 {
		list, byName = cty.ListVal(all), cty.MapVal(named)
	}
	return list, byName
}

// require evaluates the require blocks. After an error none of them holds: what they ask about was not measured whole.
func (r *runner) require() {
	for _, rule := range r.b.Requires {
		q := Require{Where: fmt.Sprintf("%s:%d", filepath.Base(rule.Range.Filename), rule.Range.Start.Line)}
		if r.out.Error != "" {
			q.Message = "not judged, since the benchmark did not run to its end"
		} else {
			ok, message, diags := r.in.Require(r.b, rule, r.out.Self())
			q.Holds, q.Message = ok && !diags.HasErrors(), message
			if diags.HasErrors() {
				q.Message = "cannot be judged: " + diags.Error()
			} else if ok {
				q.Message = ""
			}
		}
		r.out.Requires = append(r.out.Requires, q)
	}
}

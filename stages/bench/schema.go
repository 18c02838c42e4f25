package bench

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// loadBlock is the name of the nested block that disturbs a host on purpose.
const loadBlock = "load"

// Schema is what every benchmark block may contain beside generator, path, require and the one method block. loader is the schema of load
// blocks without host, nil where there is nothing that could make such a load.
func Schema(loader *schema.Block) *schema.Block {
	b := &schema.Block{
		Description: "What to send along the path, how often, and the waits around each trial. One nested block names the method.",
		Attributes: map[string]*schema.Attribute{
			"warm_up": optional(duration("", 0, "Stream sent before a trial and not counted, so that addresses are learned and caches filled: the learning of RFC 2544 section 23 a and b. 0s: none. Default: 2s; for ndr_pdr 1s.")),
			"warm_up_before": {Type: cty.String, Optional: true, OneOf: []string{"trial", "search"},
				Description: "How often the warm-up is made: before each trial, or before the first trial of each search only. Default: trial; for ndr_pdr search."},
			"settle": optional(duration("", 0, "Pause before the trial, behind the warm-up (RFC 2544 section 23 b: 2 s). Default: 2s; for ndr_pdr 200ms.")),
			"drain":  optional(duration("", 0, "Wait for frames in flight after the stream, before the receive counter is read (RFC 2544 section 23 d: 2 s). Default: 2s; for ndr_pdr 500ms.")),
			"rest":   optional(duration("", 0, "Wait before the next trial, so that the device restabilises (RFC 2544 section 23 e: at least 5 s). Default: 5s for throughput, loss_rate, latency, back_to_back, recovery and reset; 0s for the others.")),
			"repeat": optional(count(1, 1, 1000, "How often each frame size and flow count is measured: trials of continuous, whole searches of the others. Results give their median, least, greatest, standard deviation, coefficient of variation and 95 % interval. "+
				"Default: 20 for latency (RFC 2544 section 26.2), 5 for back_to_back, recovery and reset (RFC 9004 section 5 and RFC 2544 leave the number open), 1 for the others.")),
			"invalid_retries": count(3, 0, 100,
				"How often a trial that does not count (INVALID) is made again before the benchmark ends with an error."),
			"rate_tolerance": percent(5, "How far, in percent, what was due (sent and refused frames) may be from the offered load, or the stream shorter than asked for, before the trial is INVALID: the tester's fault."),
			"unsteady_above": percent(5, "Coefficient of variation, in percent, above which results of repeats are marked as unsteady."),
			"observe": {Type: cty.Bool, Optional: true, Default: cty.True,
				Description: "Watch the hosts of the path during each trial: PMD cycles, caches, CPU per core. The hosts are asked before and after the stream, not within it."},
		},
		Blocks: map[string]*schema.NestedBlock{"traffic": {Nesting: schema.Single, Block: trafficSchema()}},
	}
	if loader != nil {
		with := *loader
		with.Attributes = maps.Clone(loader.Attributes)
		if with.Attributes == nil {
			with.Attributes = map[string]*schema.Attribute{}
		}
		with.Attributes["host"] = &schema.Attribute{Type: cty.String, Optional: true, Reference: schema.RefHost,
			Description: "Host that is disturbed: host.NAME. May be left out where there is one host only."}
		b.Blocks[loadBlock] = &schema.NestedBlock{Nesting: schema.List, Block: with}
	}
	return b
}

func duration(def string, least time.Duration, what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.String, Optional: true, Default: cty.StringVal(def), Description: what, Validate: func(v cty.Value) error {
		d, err := time.ParseDuration(v.AsString())
		switch {
		case err != nil:
			return fmt.Errorf("%q is not a duration; write a number with a unit, such as 500ms, 10s or 2m", v.AsString())
		case d < least && least > 0:
			return fmt.Errorf("%s is too short; want at least %s", v.AsString(), least)
		case d < 0:
			return fmt.Errorf("%s is negative", v.AsString())
		}
		return nil
	}}
}

// optional takes the default away: it depends on the method.
func optional(a *schema.Attribute) *schema.Attribute {
	a.Default = cty.NilVal
	return a
}

func count(def, least, most int, what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.Number, Optional: true, Default: cty.NumberIntVal(int64(def)), Description: what,
		Validate: schema.Whole(int64(least), int64(most))}
}

func percent(def float64, what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.Number, Optional: true, Default: cty.NumberFloatVal(def), Description: what, Validate: between(0, 100)}
}

func between(least, most float64) func(cty.Value) error {
	return func(v cty.Value) error {
		if f, _ := v.AsBigFloat().Float64(); f < least || f > most {
			return fmt.Errorf("%v is not between %v and %v", f, least, most)
		}
		return nil
	}
}

func eachWhole(least, most int) func(cty.Value) error {
	return func(v cty.Value) error {
		if v.LengthInt() == 0 {
			return fmt.Errorf("the list is empty; nothing would be measured")
		}
		for _, e := range v.AsValueSlice() {
			if !e.IsKnown() {
				continue
			}
			if e.IsNull() {
				return fmt.Errorf("the list holds a null")
			}
			if err := schema.Whole(int64(least), int64(most))(e); err != nil {
				return err
			}
		}
		return nil
	}
}

func validMAC(v cty.Value) error {
	parts := strings.Split(v.AsString(), ":")
	ok := len(parts) == 6
	for _, p := range parts {
		_, err := strconv.ParseUint(p, 16, 8)
		ok = ok && err == nil && len(p) == 2
	}
	if !ok {
		return fmt.Errorf("%q is not a MAC address such as 02:00:00:00:00:01", v.AsString())
	}
	return nil
}

func numbers(n ...int) cty.Value {
	out := make([]cty.Value, len(n))
	for i, v := range n {
		out[i] = cty.NumberIntVal(int64(v))
	}
	return cty.ListVal(out)
}

// parseLoad reads frames per second; 0 is the maximum.
func parseLoad(s string) (float64, error) {
	if s == "max" {
		return 0, nil
	}
	f, err := scaled(s)
	if err != nil || f < 1 {
		return 0, fmt.Errorf("%q is not a load; want max, or at least one frame per second such as 1000000, 250k or 1.5M", s)
	}
	return f, nil
}

// parseRate reads bits per second.
func parseRate(s string) (float64, error) {
	f, err := scaled(s)
	if err != nil || f < 1 {
		return 0, fmt.Errorf("%q is not a bit rate such as 10G or 25G", s)
	}
	return f, nil
}

func scaled(s string) (float64, error) {
	num, scale := s, 1.0
	for suffix, by := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			num, scale = n, by
		}
	}
	f, err := strconv.ParseFloat(num, 64)
	if err == nil && (f != f || f*scale > 1e15) {
		err = strconv.ErrRange
	}
	return f * scale, err
}

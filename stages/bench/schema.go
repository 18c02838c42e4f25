package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// rfc2544Sizes are the frame sizes of RFC 2544 section 9.1 for Ethernet, in bytes with the FCS.
var rfc2544Sizes = []int{64, 128, 256, 512, 1024, 1280, 1518}

// Schema is what every benchmark block may contain beside generator, path, require and the one method block.
func Schema() *schema.Block {
	return &schema.Block{
		Description: "What to send along the path, how often, and the waits around each trial. One nested block names the method.",
		Attributes: map[string]*schema.Attribute{
			"warm_up": duration("2s", 0, "Stream sent before each trial and not counted, so that caches are filled and addresses learned. 0s: none."),
			"settle":  duration("2s", 0, "Pause between the warm-up and the trial (RFC 2544 section 23 b: 2 s)."),
			"drain":   duration("2s", 0, "Wait for frames in flight after the stream, before the receive counter is read (RFC 2544 section 23 d: 2 s)."),
			"repeat":  count(1, 1, 1000, "How many trials are made of each frame size and flow count. Summaries give their median, least, greatest and coefficient of variation."),
			"invalid_retries": count(3, 0, 100,
				"How often a trial that does not count (INVALID) is made again before the benchmark ends with an error."),
			"rate_tolerance": percent(5, "How far, in percent, the sent rate may be from the offered load, or the stream shorter than asked for, before the trial is INVALID."),
			"observe": {Type: cty.Bool, Optional: true, Default: cty.True,
				Description: "Watch the hosts of the path during each trial: PMD cycles, caches, CPU per core. The hosts are asked before and after the stream, not within it."},
		},
		Blocks: map[string]*schema.NestedBlock{"traffic": {Nesting: schema.Single, Block: trafficSchema()}},
	}
}

func trafficSchema() schema.Block {
	return schema.Block{
		Description: "The shape of the frames.",
		Attributes: map[string]*schema.Attribute{
			"frame_sizes": {Type: cty.List(cty.Number), Optional: true, Default: numbers(rfc2544Sizes...), Validate: eachWhole(64, 16000),
				Description: "Frame sizes in bytes with the FCS, 64 to 16000. Default: the seven sizes of RFC 2544 section 9.1."},
			"flows": {Type: cty.List(cty.Number), Optional: true, Default: numbers(1), Validate: eachWhole(1, 16_000_000),
				Description: "Flow counts: the trials of each frame size are made with each of them."},
			"headers": {Type: cty.String, Optional: true, Default: cty.StringVal("ipv4"), OneOf: []string{"l2", "ipv4", "udp"},
				Description: "What tells the flows apart: l2 (MAC addresses), ipv4 (IP addresses) or udp (UDP ports)."},
			"bidirectional": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Send the same load against the path at the same time (RFC 2544 section 14). Rates are then the sum of both directions."},
			"src_mac": {Type: cty.String, Optional: true, Validate: validMAC, Description: "Source MAC address of the frames. Default: the generator's own."},
			"dst_mac": {Type: cty.String, Optional: true, Validate: validMAC, Description: "Destination MAC address of the frames. Default: the generator's own choice."},
			"line_rate": {Type: cty.String, Optional: true, Validate: func(v cty.Value) error { _, err := parseRate(v.AsString()); return err },
				Description: "Bit rate of the slowest link of the path, such as 10G: reports then compare with its theoretical maximum. Leave it out where there is no link (vhost-user)."},
		},
	}
}

// Methods are the blocks of which a benchmark has exactly one.
func Methods() map[string]*schema.Block {
	return map[string]*schema.Block{
		"continuous": {
			Description: "Offers one load for each frame size and flow count and reports the rate that comes back. This is not RFC 2544 throughput, which searches for the highest rate without loss.",
			Attributes: map[string]*schema.Attribute{
				"duration": duration("10s", time.Millisecond, "How long the measured stream is (RFC 2544 section 24 asks for 60 s)."),
				"load": {Type: cty.String, Optional: true, Default: cty.StringVal("max"), Validate: func(v cty.Value) error { _, err := parseLoad(v.AsString()); return err },
					Description: "Offered load in frames per second and direction (1000000, 250k, 1.5M), or max: as fast as the generator can."},
				"max_loss": {Type: cty.Number, Optional: true, Validate: between(0, 100),
					Description: "Loss goal in percent of the frames sent: a trial that loses more is a FAIL. Left out: every trial that counts is a PASS."},
			},
		},
	}
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

func count(def, least, most int, what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.Number, Optional: true, Default: cty.NumberIntVal(int64(def)), Description: what,
		Validate: func(v cty.Value) error { return whole(v, least, most) }}
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

func whole(v cty.Value, least, most int) error {
	f := v.AsBigFloat()
	if i, _ := f.Int64(); !f.IsInt() || i < int64(least) || i > int64(most) {
		return fmt.Errorf("%s is not a whole number from %d to %d", f.Text('f', -1), least, most)
	}
	return nil
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
			if err := whole(e, least, most); err != nil {
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

package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// Methods are the blocks of which a benchmark has exactly one. Ratios are in percent, durations have a unit, loads are frames per second and direction.
func Methods() map[string]*schema.Block {
	return map[string]*schema.Block{
		"continuous": {
			Description: "Offers one load for each frame size and flow count and reports the rate that comes back. This is not RFC 2544 throughput, which searches for the highest rate without loss.",
			Attributes: map[string]*schema.Attribute{
				"duration": duration("10s", time.Millisecond, "How long the measured stream is (RFC 2544 section 24 asks for 60 s)."),
				"load":     loadOr("max", "Offered load in frames per second and direction (1000000, 250k, 1.5M), or max: as fast as the generator can."),
				"max_loss": maxLoss("Loss goal in percent of the frames: a trial that loses more is a FAIL. Left out: every trial that counts is a PASS."),
				"burst": {Type: cty.Number, Optional: true, Validate: schema.Whole(2, 1_000_000),
					Description: "Sends so many frames back to back and pauses then, so that the load is kept on average. It needs a load. Left out: frames are evenly spaced."},
			},
		},
		"throughput": {
			Description: "Searches for the highest rate without loss by bisection (RFC 2544 section 26.1). A plain block is a test by the RFC: trials of 60 s, no loss. With a tolerance or shorter final trials the result is not called RFC 2544 throughput.",
			Attributes:  searchAttributes(),
		},
		"loss_rate": {
			Description: "The curve of loss over offered load (RFC 2544 section 26.3): from 100 % of the greatest load down in steps, until two trials in a row lose nothing.",
			Attributes: with(rangeAttributes(), map[string]*schema.Attribute{
				"step":     ratioOf(10, 0.1, 50, "Step in percent of the greatest load, 0.1 to 50. RFC 2544 allows at most 10 and encourages finer ones."),
				"trial":    duration("60s", time.Millisecond, "Length of a trial (RFC 2544 section 24: at least 60 s)."),
				"max_loss": maxLoss("Loss goal in percent for every trial of the curve. Left out: a curve has none."),
			}),
		},
		"latency": {
			Description: "Delay of frames at the throughput (RFC 2544 section 26.2), with the percentiles of RFC 8219 section 7. The throughput of each frame size is searched first, unless it is given. A plain block streams 120 s, 20 times.",
			Attributes: map[string]*schema.Attribute{
				"duration":   duration("120s", time.Millisecond, "Length of the stream (RFC 2544 section 26.2: at least 120 s)."),
				"max_loss":   maxLoss("Loss goal in percent: a trial that loses more is a FAIL."),
				"throughput": givenThroughput(),
			},
			Blocks: baseSearch(),
		},
		"back_to_back": {
			Description: "The longest burst at the least inter-frame gap that passes without loss, and from it the buffer time of the device, corrected for what it forwards meanwhile (RFC 9004, which replaces RFC 2544 section 26.4). " +
				"The throughput of each frame size is searched first, unless it is given. It needs the greatest rate: of traffic.line_rate, of max_load, or of a trial at maximum that the search makes.",
			Attributes: map[string]*schema.Attribute{
				"min_step":   count(64, 1, 1_000_000_000, "Frames between the longest burst that passed and the shortest that did not."),
				"max_time":   duration("30s", time.Millisecond, "The longest burst that is tried (RFC 9004 section 5.4: at least 30 s)."),
				"retries":    retriesOf(),
				"throughput": givenThroughput(),
				"max_load":   bound("Rate that bursts are sent at. Default: the theoretical maximum of traffic.line_rate, else what the generator reaches at maximum."),
			},
			Blocks: baseSearch(),
		},
		"recovery": {
			Description: "How long the device loses frames after an overload (RFC 2544 section 26.5): 110 % of the throughput for 60 s, then half of that rate at once; the time until the last frame that gets lost. " +
				"The throughput of each frame size is searched first, unless it is given.",
			Attributes: map[string]*schema.Attribute{
				"overload":      ratioOf(110, 100.1, 1000, "Overload in percent of the throughput, above 100."),
				"overload_time": duration("60s", time.Millisecond, "How long the overload lasts (RFC 2544: at least 60 s)."),
				"reduced":       ratioOf(50, 0.1, 99.9, "Load afterwards, in percent of the overload."),
				"reduced_time":  duration("60s", time.Millisecond, "How long recovery is waited for; RFC 2544 names no time."),
				"max_time":      optional(duration("", time.Nanosecond, "Goal: a longer recovery is a FAIL.")),
				"throughput":    givenThroughput(),
			},
			Blocks: baseSearch(),
		},
		"reset": {
			Description: "How long the path is interrupted by a reset of the device (RFC 2544 section 26.6, RFC 6201): an object of the testbed is restarted while traffic flows, and what lost its effect by it is applied again, as a user would see it. " +
				"The throughput of each frame size is searched first, unless it is given.",
			Attributes: map[string]*schema.Attribute{
				"target": {Type: cty.String, Optional: true, Reference: schema.RefResource,
					Description: "What is reset: a reference to a resource that can be, such as ovs_switch.dut. May be left out with a generator that is a model only."},
				"kind": {Type: cty.String, Optional: true, Default: cty.StringVal("restart"),
					Description: "Kind of reset: restart (asked to end, then started) or kill (SIGKILL, then started), as the target's type offers them."},
				"duration":   duration("60s", time.Millisecond, "Length of the stream; it must outlast the outage."),
				"after":      duration("5s", 0, "When the reset is made, into the stream."),
				"max_time":   optional(duration("", time.Nanosecond, "Goal: a longer outage is a FAIL.")),
				"throughput": givenThroughput(),
			},
			Blocks: baseSearch(),
		},
		"burst": {
			Description: "The highest average rate without loss when frames come in bursts of 16, 64, 256 and 1024 back to back (RFC 2544 section 21).",
			Attributes: with(rangeAttributes(), map[string]*schema.Attribute{
				"lengths": {Type: cty.List(cty.Number), Optional: true, Default: numbers(16, 64, 256, 1024), Validate: eachWhole(2, 1_000_000),
					Description: "Burst lengths in frames."},
				"resolution": resolutionOf(),
				"trial":      duration("60s", time.Millisecond, "Length of a trial (RFC 2544 section 24: at least 60 s)."),
				"loss":       lossOf(),
				"retries":    retriesOf(),
			}),
		},
		"soak": {
			Description: "One load for a long time, in slices that are a trial each, so that an interrupted soak keeps what it has. Every lost frame is looked for in the ledger.",
			Attributes: map[string]*schema.Attribute{
				"duration":   duration("10m", time.Millisecond, "Length of the whole."),
				"slice":      duration("60s", time.Millisecond, "The longest trial."),
				"load":       loadOr("max", "Offered load in frames per second and direction, or max. Not together with share."),
				"share":      {Type: cty.Number, Optional: true, Validate: between(0.1, 100), Description: "Offered load in percent of the throughput, which is then searched first, unless it is given."},
				"max_loss":   maxLoss("Loss goal in percent, of each slice and of the whole."),
				"explained":  {Type: cty.Bool, Optional: true, Default: cty.False, Description: "Make lost frames whose place and cause no hop names a FAIL."},
				"throughput": givenThroughput(),
			},
			Blocks: baseSearch(),
		},
		"ndr_pdr": {
			Description: "Searches several goals in one run by MLRsearch (draft-ietf-bmwg-mlrsearch): by default the no-drop rate NDR (no loss) and the partial-drop rate PDR (0.5 %), with FD.io CSIT's parameters: trials of 1 s, 21 s in all at a load, of which half may exceed. " +
				"Each trial counts for all goals. Goals may be written out instead, as goal blocks. Beside its own waits each trial has drain and settle, which are short by default.",
			Attributes: with(rangeAttributes(), goalAttributes(true), map[string]*schema.Attribute{
				"pdr_loss":   ratioOf(0.5, 0, 99, "Loss in percent that PDR allows."),
				"time_limit": duration("20m", time.Second, "A search that takes longer, waits included, ends with the bounds that it has, marked as unfinished."),
			}),
			Blocks: map[string]*schema.NestedBlock{"goal": {Nesting: schema.Map, Block: schema.Block{
				Description: "One goal, by the name that its figure gets. Goals stand instead of NDR and PDR. What is left out is as in the ndr_pdr block.",
				Attributes:  with(goalAttributes(false), map[string]*schema.Attribute{"loss": ratioOf(0, 0, 99, "Greatest loss in percent of a trial that passes: the goal loss ratio.")}),
			}}},
		},
	}
}

// rfc2544 are the methods whose trials have the phases of RFC 2544 section 23 by default.
func rfc2544(method string) bool {
	return slices.Contains([]string{"throughput", "loss_rate", "latency", "back_to_back", "recovery", "reset"}, method)
}

// defaultRepeat is how often a method is repeated when the benchmark does not say.
func defaultRepeat(method string) int {
	switch method {
	case "latency":
		return 20
	case "back_to_back", "recovery", "reset":
		return 5
	}
	return 1
}

// rangeAttributes bound the loads of a search.
func rangeAttributes() map[string]*schema.Attribute {
	return map[string]*schema.Attribute{
		"min_load": bound("The least load that is tried, in frames per second and direction. When it does not pass there is no result, rather than 0. Default: 1."),
		"max_load": bound("The greatest load that is offered. Default: the theoretical maximum of traffic.line_rate; without either, what the generator sends in a first trial at maximum."),
	}
}

// searchAttributes are a throughput search's.
func searchAttributes() map[string]*schema.Attribute {
	return with(rangeAttributes(), map[string]*schema.Attribute{
		"resolution": resolutionOf(),
		"trial":      optional(duration("", time.Millisecond, "Length of the trials of the search. Default: as final. Shorter ones save time; what is reported has always passed a final trial.")),
		"final":      duration("60s", time.Millisecond, "Length of the trial that a reported rate has passed (RFC 2544 section 24: at least 60 s)."),
		"loss":       lossOf(),
		"retries":    retriesOf(),
	})
}

// baseSearch is the throughput search before a method that needs one.
func baseSearch() map[string]*schema.NestedBlock {
	return map[string]*schema.NestedBlock{"search": {Nesting: schema.Single, Block: schema.Block{
		Description: "How the throughput is searched; not used where throughput is given.", Attributes: searchAttributes()}}}
}

// goalAttributes are an MLRsearch goal's without its loss.
func goalAttributes(defaults bool) map[string]*schema.Attribute {
	out := map[string]*schema.Attribute{
		"trial":     duration("1s", time.Millisecond, "Length of a full trial: the goal final trial duration."),
		"sum":       duration("21s", time.Millisecond, "Time in full trials that decides a load for certain, at least trial: the goal duration sum."),
		"initial":   optional(duration("", time.Millisecond, "Length of the first, coarse trials, at most trial. Default: as trial.")),
		"exceed":    ratioOf(50, 0, 99, "Share in percent of the time that may be in trials with more loss: the goal exceed ratio. 0: one bad trial fails a load."),
		"width":     ratioOf(0.5, 0.0001, 99, "How far apart the bounds may be at the end, in percent of the upper: the goal width."),
		"preceding": count(2, 0, 10, "How many easier targets, shorter and wider, are solved before."),
	}
	if !defaults {
		for _, a := range out {
			optional(a)
		}
	}
	return out
}

func with(all ...map[string]*schema.Attribute) map[string]*schema.Attribute {
	out := map[string]*schema.Attribute{}
	for _, m := range all {
		for name, a := range m {
			out[name] = a
		}
	}
	return out
}

func loadOr(def, what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.String, Optional: true, Default: cty.StringVal(def), Description: what, Validate: validLoad}
}

// bound is a load that is not "max".
func bound(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.String, Optional: true, Description: what, Validate: func(v cty.Value) error {
		if f, err := parseLoad(v.AsString()); err != nil || f == 0 {
			return fmt.Errorf("%q is not a load; want at least one frame per second, such as 1000000, 250k or 1.5M", v.AsString())
		}
		return nil
	}}
}

func givenThroughput() *schema.Attribute {
	return bound("Throughput in frames per second and direction, for every frame size, where it is known: nothing is searched then. Results say that it was given.")
}

func validLoad(v cty.Value) error { _, err := parseLoad(v.AsString()); return err }

func maxLoss(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.Number, Optional: true, Validate: between(0, 100), Description: what}
}

func ratioOf(def, least, most float64, what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.Number, Optional: true, Default: cty.NumberFloatVal(def), Validate: between(least, most), Description: what}
}

func resolutionOf() *schema.Attribute {
	return ratioOf(0.5, 0.0001, 99, "How far apart the bounds may be at the end, in percent of the upper.")
}

func lossOf() *schema.Attribute {
	return ratioOf(0, 0, 99, "Loss in percent that still passes. Above 0 the result is not RFC 2544's.")
}

func retriesOf() *schema.Attribute {
	return count(0, 0, 100, "How often a lossy trial is repeated before its load is rejected: binary search with loss verification (ETSI GS NFV-TST 009 section 12.3.3). 0: one trial decides.")
}

// Package search is the methods' pure core: given the trials that counted so far, it says what to try next, and what has been found. It
// makes no trial, reads no clock and keeps nothing between calls, so that a search can be replayed from its trials, which is also how an interrupted run
// goes on.
package search

import (
	"slices"
	"time"

	"plumb/providers"
)

// Ask is a trial to make.
type Ask struct {
	// Phase names what the trial is for: "search", "verify", "curve", "latency", "burst", "recovery", "reset", "soak", "warm_up", "maximum". A trial's phase comes
	// back in Seen.
	Phase    string
	Load     float64 // frames/s and direction; 0: as fast as possible
	Duration time.Duration
	Frames   int
	Burst    int
	Steps    []providers.Step
	Slice    time.Duration // asks for the loss over time
	Disturb  bool          // reset the device under test DisturbAfter into the stream
	After    time.Duration
}

// Seen is a trial that counted, PASS or FAIL: an INVALID one is never shown to a search.
type Seen struct {
	Ask
	// Effective is the measured duration (MLRsearch: at least the intended one).
	Effective time.Duration
	// Sent, Unsent and Received are of all directions together. Loss is (Sent+Unsent-Received)/(Sent+Unsent) at an offered load, since a frame
	// that the device's full queue refused is lost, and (Sent-Received)/Sent at Load 0. With two directions it is the greater of the two:
	// a sum would hide one-way loss.
	Sent, Unsent, Received uint64
	Loss                   float64
	TxRate, RxRate         float64 // frames/s and direction, the lesser of two
	Latency                []*providers.Latency
	LossSlices             []uint64       // of all directions together, by Ask.Slice; nil: not known
	LastLoss               *time.Duration // the later of two directions
	Outage, OutageAt       *time.Duration // the longer of two directions
	// Unexplained are lost frames, of all directions, whose loss no hop of the ledger names (the sum of its unexplained, without sign); 0 without a ledger.
	Unexplained uint64
}

// AddLoss adds a direction's loss by slice to that of the directions before it. It is not known when that of one is not.
func AddLoss(sum []uint64, first bool, more []uint64) []uint64 {
	if first {
		return slices.Clone(more)
	}
	if len(sum) != len(more) {
		return nil
	}
	for i, n := range more {
		sum[i] += n
	}
	return sum
}

// Search decides what to try. Methods are called with the trials that counted, in the order they were made.
type Search interface {
	// Next says what to try; false: done. It is a function of its argument only.
	Next(done []Seen) (Ask, bool)
	// Judge says why a trial misses its goal, "" when it does not: FAIL and PASS.
	Judge(s Seen) string
	// Figures are what was found; also of a search that is not done, as far as it can be told then (Figure.Unfinished).
	Figures(done []Seen) []Figure
}

// Figure is one number that a method found.
type Figure struct {
	Name  string  // "throughput", "NDR", "PDR", "back_to_back", "buffer_time", "recovery_time", "reset_time", ...
	Unit  string  // "fps", "frames", "s", "ns", "ratio"
	Value float64 // meaningless when None is set
	// Lower and Upper are the bounds that a search ends with; both 0: it has none.
	Lower, Upper float64
	// None says why there is no value: "below the least load", "not applicable: throughput is the theoretical maximum".
	None string
	// Bound says how Value is meant when it is no measured point: ">=" (the greatest load that may be offered passed).
	Bound string
	// Primary figures head a report; others stand in the table below.
	Primary bool
	// Label is what a report may call it: only a search by the rules is "RFC 2544 throughput"; with a tolerance or short trials it says so.
	Label string
	// Attributes are the goal's parameters, name and value, in order.
	Attributes [][2]string
	Unfinished bool
}

package engine

import (
	"fmt"
	"time"
)

// maxSlices is how many slices a trial may be cut into: an answer with so many numbers still fits a line of the worker's protocol.
const maxSlices = 1 << 16

// slices counts frames by when they were due: that of frames that were sent is in their stamp, so sender and receiver agree. nil counts nothing.
type slices struct {
	length uint64 // ns
	counts []uint64
}

// newSlices cuts the schedule of a request; nil when it asks for no slices.
func newSlices(req Request) *slices {
	if req.Slice == 0 {
		return nil
	}
	n := (length(req) + req.Slice - 1) / req.Slice
	return &slices{length: uint64(req.Slice), counts: make([]uint64, n)}
}

// checkSlices refuses what cannot be cut.
func checkSlices(req Request) error {
	switch {
	case req.Slice == 0:
		return nil
	case req.Slice < 0:
		return fmt.Errorf("slices of %s: they need a length above 0", req.Slice)
	case req.Frames > 0:
		return fmt.Errorf("a number of frames has no length that could be cut into slices of %s", req.Slice)
	case length(req)/req.Slice >= maxSlices:
		return fmt.Errorf("slices of %s are more than %d in %s: take longer ones", req.Slice, maxSlices, length(req))
	}
	return nil
}

// add counts n frames stamped with at (see stamp). What is late counts in the last slice.
func (s *slices) add(at, n uint64) {
	s.counts[min((at-1)/s.length, uint64(len(s.counts)-1))] += n
}

// lost is what was due in each slice and was not received.
func lost(due []*slices, received []*slices) []uint64 {
	var out []uint64
	for _, s := range due {
		if out == nil {
			out = make([]uint64, len(s.counts))
		}
		for i, n := range s.counts {
			out[i] += n
		}
	}
	for _, s := range received {
		for i, n := range s.counts {
			out[i] -= min(out[i], n)
		}
	}
	return out
}

// later is the later of two times, nil being none.
func later(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

package search

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// BackToBackConfig is the back-to-back test of RFC 9004, which replaces RFC 2544 section 26.4. Repeats, and the wait of at least 2 s between bursts, are the caller's.
type BackToBackConfig struct {
	Throughput float64       // frames/s and direction, found before for this frame size
	Max        float64       // the theoretical frame rate of the link, or the greatest of the tester where there is no link, above 0: what a burst is sent at
	MinStep    int           // frames, how far apart the bounds may be at the end; 0: 64
	MaxTime    time.Duration // the longest burst; 0: 30 s (RFC 9004 asks for at least that)
	Retries    int           // as ThroughputConfig.Retries
}

// BackToBack searches the longest burst at the greatest rate that loses nothing: doubled from MinStep until one loses, then bisected. Its figures are back_to_back in frames,
// buffer_time (that burst over the theoretical rate) and corrected_buffer_time (times 1 - throughput/theoretical rate, since what is forwarded during the burst is not
// buffered). Both times are linear in the burst, so that the mean over repeats is that of the mean burst. It makes no trial, and the figures
// are None, where the throughput is the theoretical rate, since no burst fills a buffer then. A burst that lasts MaxTime without loss is unbounded: None.
func BackToBack(c BackToBackConfig) (Search, error) {
	c.MinStep, c.MaxTime = or(c.MinStep, 64), or(c.MaxTime, 30*time.Second)
	errs := []error{load(c.Throughput), load(c.Max), duration("the longest burst", c.MaxTime), retries(c.Retries)}
	if c.Max == 0 {
		errs = append(errs, errors.New("the theoretical frame rate is not given; buffer times are worked out from it"))
	}
	if c.MinStep < 1 || c.Max > 0 && float64(c.MinStep) > c.Max*c.MaxTime.Seconds() {
		errs = append(errs, fmt.Errorf("a step of %d frames; it is at least 1 and at most the longest burst, %.0f", c.MinStep, c.Max*c.MaxTime.Seconds()))
	}
	return backToBack{c}, errors.Join(errs...)
}

type backToBack struct{ c BackToBackConfig }

func (b backToBack) applies() bool { return b.c.Throughput < b.c.Max }

// longest is the longest burst, in frames.
func (b backToBack) longest() float64 { return math.Floor(b.c.Max * b.c.MaxTime.Seconds()) }

func (b backToBack) bounds(done []Seen) (lo, hi float64) {
	t := newTally(b.c.Retries)
	for _, s := range done {
		t.add(float64(s.Frames), s.Loss == 0)
	}
	return t.bounds()
}

func (b backToBack) Next(done []Seen) (Ask, bool) {
	if !b.applies() {
		return Ask{}, false
	}
	step := float64(b.c.MinStep)
	lo, hi := b.bounds(done)
	n, more := 0.0, true
	switch {
	case hi == 0:
		n, more = math.Min(b.longest(), math.Max(step, 2*lo)), lo < b.longest()
	default:
		n, more = bisect(lo, hi, step, b.longest(), func(lo, hi float64) bool { return hi-lo <= step })
	}
	return Ask{Phase: "burst", Frames: int(n)}, more
}

func (b backToBack) Judge(t Seen) string { return lossy(t, 0) }

func (b backToBack) Figures(done []Seen) []Figure {
	attributes := [][2]string{
		{"throughput", fps(b.c.Throughput)}, {"theoretical rate", fps(b.c.Max)}, {"least step", plural(b.c.MinStep, "frame")},
		{"longest burst", b.c.MaxTime.String()}, {"loss verification", plural(b.c.Retries, "retrial")},
	}
	frames := Figure{Name: "back_to_back", Unit: "frames", Primary: true, Label: "RFC 9004 back-to-back frames", Attributes: attributes}
	implied := Figure{Name: "buffer_time", Unit: "s", Label: "RFC 9004 implied buffer time", Attributes: attributes}
	corrected := Figure{Name: "corrected_buffer_time", Unit: "s", Primary: true, Label: "RFC 9004 corrected buffer time", Attributes: attributes}
	if b.c.MaxTime < 30*time.Second {
		short := []string{fmt.Sprintf("bursts up to %s, not 30 s", b.c.MaxTime)}
		frames.Label, implied.Label, corrected.Label = against(frames.Label, short), against(implied.Label, short), against(corrected.Label, short)
	}
	none := ""
	_, more := b.Next(done)
	lo, hi := b.bounds(done)
	switch {
	case !b.applies():
		none = fmt.Sprintf("not applicable: the throughput, %s, is the theoretical maximum, %s", fps(b.c.Throughput), fps(b.c.Max))
	case !more && lo == b.longest():
		none = fmt.Sprintf("unbounded: a burst of %s, %.0f frames, lost nothing", b.c.MaxTime, lo)
	case lo == 0 && more:
		none = "no burst has passed yet"
	case lo == 0:
		none = fmt.Sprintf("a burst of %s, the least step, lost frames", plural(b.c.MinStep, "frame"))
	}
	out := []Figure{frames, implied, corrected}
	factor := []float64{1, 1 / b.c.Max, (1 - b.c.Throughput/b.c.Max) / b.c.Max}
	for i := range out {
		out[i].None, out[i].Unfinished = none, more
		if none == "" {
			out[i].Value, out[i].Lower, out[i].Upper = lo*factor[i], lo*factor[i], hi*factor[i]
		}
	}
	return out
}

package engine

import (
	"testing"
	"time"

	"plumb/providers"
)

// Frame k is due at k/rate, whatever the rate and however late.
func TestPaceDue(t *testing.T) {
	const hour = int64(time.Hour)
	for _, c := range []struct {
		name        string
		req         Request
		part, parts int
		at          int64
		done        uint64
		due, passed uint64
	}{
		{"the first frame at once", Request{Load: 1000, Duration: time.Second}, 0, 1, 0, 0, 1, 0},
		{"just before the second", Request{Load: 1000, Duration: time.Second}, 0, 1, 999_999, 0, 1, 0},
		{"the second", Request{Load: 1000, Duration: time.Second}, 0, 1, 1_000_000, 0, 2, 1},
		{"at the end", Request{Load: 1000, Duration: time.Second}, 0, 1, 1e9, 0, 1000, 1000},
		{"long after the end", Request{Load: 1000, Duration: time.Second}, 0, 1, 5e9, 0, 1000, 1000},
		{"a part of a frame more", Request{Load: 1000.5, Duration: 10 * time.Second}, 0, 1, 10e9, 0, 10005, 10005},
		{"less than one frame", Request{Load: 0.1, Duration: time.Second}, 0, 1, 1e9, 0, 1, 1},
		{"a third, after ten hours", Request{Load: 1e6 / 3, Duration: 20 * time.Hour}, 0, 1, 10 * hour, 0, 12_000_000_000, 11_999_999_999}, // 333333.333333 frames/s: 0.012 frames less
		{"100 Mpps after ten hours", Request{Load: 1e8, Duration: 20 * time.Hour}, 0, 1, 10 * hour, 0, 3_600_000_000_001, 3_600_000_000_000},
		{"no limit", Request{Duration: time.Second}, 0, 1, 5, 7, noLimit, 0},
		{"no limit, at the end", Request{Duration: time.Second}, 0, 1, 1e9, 7, 7, 7},
		{"a number of frames, back to back", Request{Frames: 8}, 0, 1, 0, 0, 8, 0},
		{"a number of frames, paced", Request{Frames: 8, Load: 1000}, 0, 1, 2e6, 0, 3, 2},
		{"a number of frames, paced, all", Request{Frames: 8, Load: 1000}, 0, 1, 1e9, 0, 8, 8},
		{"a burst at once", Request{Load: 1000, Duration: time.Second, Burst: 100}, 0, 1, 0, 0, 100, 0},
		{"a burst's pause", Request{Load: 1000, Duration: time.Second, Burst: 100}, 0, 1, 99_999_999, 0, 100, 0},
		{"the second burst", Request{Load: 1000, Duration: time.Second, Burst: 100}, 0, 1, 100_000_000, 0, 200, 100},
		{"a last burst that is cut", Request{Load: 1000, Duration: time.Second, Burst: 300}, 0, 1, 950e6, 0, 1000, 900},
		{"the first of three queues", Request{Load: 1000, Duration: time.Second}, 0, 3, 3e6, 0, 2, 1},
		{"the second of three queues", Request{Load: 1000, Duration: time.Second}, 1, 3, 3e6, 0, 1, 1},
		{"the last of three queues, all", Request{Load: 1000, Duration: time.Second}, 2, 3, 1e9, 0, 333, 333},
	} {
		p := newPace(c.req, c.part, c.parts)
		due, passed := p.at(c.at, c.done)
		if c.name == "a third, after ten hours" { // the load is kept to a millionth of a frame/s
			if d := int64(c.due - due); d < 0 || d > 1 {
				t.Errorf("%s: %d due; want at most one less than %d", c.name, due, c.due)
			}
			continue
		}
		if due != c.due || passed != c.passed {
			t.Errorf("%s: %d due, %d passed; want %d, %d", c.name, due, passed, c.due, c.passed)
		}
	}
}

// Queues have their shares of every step, and the shares add up.
func TestPaceSteps(t *testing.T) {
	req := Request{Load: 1001, Duration: time.Second, Steps: []providers.Step{{Load: 500, Duration: time.Second}, {Load: 3, Duration: 500 * time.Millisecond}}}
	for _, parts := range []int{1, 2, 7} {
		for at, want := range map[int64]uint64{999_999_999: 1001, 1e9: 1002, 1_500_000_000: 1001 + 251, 2e9: 1502, 3e9: 1503} {
			var sum uint64
			for i := range parts {
				due, _ := newPace(req, i, parts).at(at, 0)
				sum += due
			}
			if sum != want {
				t.Errorf("%d queues at %d: %d due; want %d", parts, at, sum, want)
			}
		}
	}
}

// After a load without limit the next begins with what was sent by then.
func TestPaceStepAfterMaximum(t *testing.T) {
	req := Request{Duration: time.Second, Steps: []providers.Step{{Load: 10, Duration: time.Second}}}
	p := newPace(req, 0, 1)
	if due, _ := p.at(5e8, 123); due != noLimit || !p.unpaced() {
		t.Errorf("%d due at a load without limit", due)
	}
	if due, passed := p.at(1e9, 1000); due != 1001 || passed != 1000 || p.unpaced() {
		t.Errorf("%d due, %d passed; want 1001, 1000", due, passed)
	}
	if due, _ := p.at(15e8, 1001); due != 1006 {
		t.Errorf("%d due half a second later; want 1006", due)
	}
	if p.over(15e8, 1006) || p.over(2e9, 1009) || !p.over(2e9, 1010) {
		t.Error("the end is at another time than that of the last frame")
	}
}

// A schedule that is asked often gives the same as one that is asked once.
func TestPaceIsAbsolute(t *testing.T) {
	req := Request{Load: 7_654_321.123, Duration: time.Hour}
	often, once := newPace(req, 0, 1), newPace(req, 0, 1)
	var done uint64
	for at := int64(0); at < int64(time.Hour); at += 977_777_777 {
		done, _ = often.at(at, done)
	}
	want, _ := once.at(int64(time.Hour), 0)
	if got, _ := often.at(int64(time.Hour), done); got != want || want != 27555556043 {
		t.Errorf("%d due after an hour; asked once: %d", got, want)
	}
}

func BenchmarkPace(b *testing.B) {
	p := newPace(Request{Load: 12_345_678.9, Duration: time.Hour}, 0, 1)
	b.ReportAllocs()
	var sum uint64
	for i := range b.N {
		due, _ := p.at(int64(i), 0)
		sum += due
	}
	_ = sum
}

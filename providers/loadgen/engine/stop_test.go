package engine

import (
	"testing"
	"time"

	"plumb/providers/loadgen/port/porttest"
)

// A stream that is stopped is drained: what was on its way is not lost; and its duration is the time that it had.
func TestStop(t *testing.T) {
	s := newSim(t, Config{}, porttest.Options{Delay: int64(100 * time.Millisecond)})
	s.begin(Request{Load: 1000, Duration: time.Hour})
	s.run(time.Second, time.Millisecond)
	s.e.Stop()
	res := s.end(200 * time.Millisecond)
	d := res.Directions[0]
	if d.Sent != 1000 || d.Received != 1000 || d.Unsent != 0 || res.Behind != 0 {
		t.Errorf("%+v", res)
	}
	if off := res.Duration - time.Second; off < 0 || off > 2*time.Millisecond {
		t.Errorf("a stream that was stopped after 1 s lasted %s", res.Duration)
	}
}

package engine

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/providers"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/port/porttest"
)

// myCPUs are those that this process may run on.
func myCPUs(t testing.TB) []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var out []int
	for i := 0; len(out) < set.Count(); i++ {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}

// open makes an engine whose threads leave time for whatever else runs on a small machine.
func open(t testing.TB, cfg Config, o porttest.Options) (*Engine, *porttest.Port, *porttest.Port) {
	t.Helper()
	a, b := porttest.Pair(o)
	if cfg.CPUs == nil {
		cfg.CPUs = myCPUs(t)[:1]
	}
	cfg.Idle = 100 * time.Microsecond
	e, err := New(cfg, []port.Port{a, b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		if !a.Closed() || !b.Closed() {
			t.Error("a port is still open")
		}
	})
	return e, a, b
}

var oneWay = []Stream{{From: 0, To: 1, Traffic: plainTraffic}}

// settings are those of the process that a trial changes.
func settings() [3]int64 {
	gc := debug.SetGCPercent(100)
	debug.SetGCPercent(gc)
	return [3]int64{int64(gc), debug.SetMemoryLimit(-1), int64(runtime.GOMAXPROCS(0))}
}

// Real threads count each frame, and leave nothing behind.
func TestRun(t *testing.T) {
	before, was := settings(), runtime.NumGoroutine()
	e, _, _ := open(t, Config{CPUs: myCPUs(t), CatchUp: 1000}, porttest.Options{Queues: 2, Depth: 4096})
	both := []Stream{{From: 0, To: 1, Traffic: plainTraffic}, {From: 1, To: 0, Traffic: plainTraffic}}
	for range 3 {
		res, err := e.Run(t.Context(), Request{Streams: both, Load: 50e3, Duration: 30 * time.Millisecond, Drain: 10 * time.Second}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := countsOf(res); got.Sent != got.Received || got.Sent+got.Unsent+got.Behind != 3000 || got.Sent == 0 || got.Surplus+got.Duplicated != 0 {
			t.Errorf("%+v", res)
		}
	}
	if after := settings(); after != before {
		t.Errorf("GC percent, memory limit, GOMAXPROCS: %d; were %d", after, before)
	}
	if now := runtime.NumGoroutine(); now > was {
		t.Errorf("%d goroutines, there were %d", now, was)
	}
}

func TestRunDisturbed(t *testing.T) {
	e, a, _ := open(t, Config{}, porttest.Options{})
	req := Request{Streams: oneWay, Load: 1000, Duration: 50 * time.Millisecond, Drain: 10 * time.Second}
	called := 0
	res, err := e.Run(t.Context(), req, func(context.Context) error { called++; a.Flap(); return nil }, 10*time.Millisecond)
	if err != nil || called != 1 || res.LinkChanges != 2 {
		t.Errorf("%+v, %v; called %d times", res, err, called)
	}
	broken := errors.New("it broke")
	req.Duration = time.Hour
	if _, err = e.Run(t.Context(), req, func(context.Context) error { return broken }, time.Millisecond); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// A trial of an hour ends with its context, and says what it counted.
func TestRunCancelled(t *testing.T) {
	var once sync.Once
	sent := make(chan struct{})
	e, _, _ := open(t, Config{}, porttest.Options{Fate: func(int, uint64) int { once.Do(func() { close(sent) }); return 1 }})
	ctx, cancel := context.WithCancel(t.Context())
	req := Request{Streams: oneWay, Load: 10e3, Duration: time.Hour, Drain: time.Hour}
	res, err := e.Run(ctx, req, func(context.Context) error {
		if _, err := e.Run(ctx, req, nil, 0); err == nil {
			t.Error("two trials at once")
		}
		<-sent
		cancel()
		return nil
	}, time.Millisecond)
	if !errors.Is(err, context.Canceled) || res.Directions[0].Sent == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := e.Run(ctx, req, nil, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	e, _, _ := open(t, Config{}, porttest.Options{MaxFrame: 100})
	ok := Request{Streams: oneWay, Load: 10, Duration: time.Second}
	for want, change := range map[string]func(*Request){
		"no stream":          func(r *Request) { r.Streams = nil },
		"to port 2":          func(r *Request) { r.Streams = []Stream{{From: 0, To: 2, Traffic: plainTraffic}} },
		"cannot be offered":  func(r *Request) { r.Load = -1 },
		"lasts for 0s":       func(r *Request) { r.Duration = 0 },
		"in steps":           func(r *Request) { r.Frames, r.Steps = 1, []providers.Step{{Load: 1}} },
		"bursts need a load": func(r *Request) { r.Burst, r.Load = 2, 0 },
		"cannot be negative": func(r *Request) { r.Drain = -1 },
		"are longer than ports": func(r *Request) {
			r.Streams = []Stream{{From: 0, To: 1, Traffic: providers.Traffic{FrameSize: 105, Flows: 1, Headers: "udp"}}}
		},
		"frames from mem0 to":    func(r *Request) { r.Streams = []Stream{{From: 0, To: 1, Traffic: providers.Traffic{FrameSize: 2}}} },
		"before it is to be dis": func(*Request) {},
	} {
		r, after := ok, time.Millisecond
		if change(&r); strings.HasPrefix(want, "before") {
			after = 2 * time.Second
		}
		if _, err := e.Run(t.Context(), r, func(context.Context) error { return nil }, after); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	for want, cfg := range map[string]Config{
		"no CPU":            {},
		"pin a thread":      {CPUs: []int{8000}},
		"CPU number":        {CPUs: []int{-1}},
		"priorities":        {CPUs: []int{0}, Realtime: 100},
		"a power of two":    {CPUs: []int{0}, Sample: 3},
		"cannot be negativ": {CPUs: []int{0}, Window: -1},
	} {
		a, b := porttest.Pair(porttest.Options{})
		if _, err := New(cfg, []port.Port{a, b}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// turning gives a function that sends and receives at least so many frames on ports in memory, in one thread's turns.
func turning(tb testing.TB, traffic providers.Traffic, load float64) func(frames uint64) {
	x, y := porttest.Pair(porttest.Options{})
	e := &Engine{config: Config{CPUs: []int{0}, CatchUp: 1 << 30}, ports: []port.Port{x, y}, clock: newClock()}
	tr, err := e.prepare(Request{Streams: []Stream{{From: 0, To: 1, Traffic: traffic}}, Load: load, Duration: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
	w := tr.threads[0]
	w.arrive()
	w.start = e.clock()
	turn := func(frames uint64) {
		for end := tr.senders[0].sent + frames; tr.senders[0].sent < end; {
			if _, err := w.turn(e.clock()); err != nil {
				tb.Fatal(err)
			}
		}
	}
	turn(4096) // buffers are written whole once
	return turn
}

var turns = []struct {
	name    string
	traffic providers.Traffic
	load    float64
}{
	{"64", plainTraffic, 0},
	{"64 paced", plainTraffic, 1e9},
	{"1518", providers.Traffic{FrameSize: 1518, Flows: 1, Headers: "udp"}, 0},
	{"64 of 1000 flows", providers.Traffic{FrameSize: 64, Flows: 1000, Headers: "udp"}, 0},
	{"imix", providers.Traffic{FrameSize: 362, Sizes: []int{64, 64, 64, 64, 64, 64, 64, 594, 594, 594, 594, 1518}, Flows: 10, Headers: "ipv4"}, 0},
}

// BenchmarkTurn is the hot loop for one frame that goes out and comes back: building, pacing, parsing, accounting, with the clock read as in a trial.
func BenchmarkTurn(b *testing.B) {
	for _, c := range turns {
		b.Run(c.name, func(b *testing.B) {
			turn := turning(b, c.traffic, c.load)
			b.ReportAllocs()
			b.ResetTimer()
			turn(uint64(b.N))
		})
	}
}

// Nothing is allocated for a frame: what the garbage collector does not have to look at cannot stop a thread.
func TestTurnDoesNotAllocate(t *testing.T) {
	for _, c := range turns {
		turn := turning(t, c.traffic, c.load)
		if n := testing.AllocsPerRun(20, func() { turn(1000) }); n != 0 {
			t.Errorf("%s: %g allocations for 1000 frames", c.name, n)
		}
	}
}

func BenchmarkClock(b *testing.B) {
	now := newClock()
	var last int64
	for range b.N {
		last = now()
	}
	_ = last
}

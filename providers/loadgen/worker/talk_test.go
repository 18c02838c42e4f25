package worker

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
	"plumb/providers/loadgen/engine"
)

// fakeEngine answers at once, or when it is cancelled.
type fakeEngine struct {
	hold    bool          // until cancelled
	started chan struct{} // a value for each trial that holds
	answer  engine.Result
	err     error

	mu     sync.Mutex
	after  time.Duration // of a disturbance
	ran    []engine.Request
	closes int
}

func (f *fakeEngine) Run(ctx context.Context, r engine.Request, disturb func(context.Context) error, after time.Duration) (engine.Result, error) {
	f.mu.Lock()
	f.ran = append(f.ran, r)
	f.mu.Unlock()
	if f.hold {
		f.started <- struct{}{}
		if disturb != nil {
			f.after = after
			if err := disturb(ctx); err != nil {
				return f.answer, err
			}
		}
		<-ctx.Done()
		return f.answer, ctx.Err()
	}
	return f.answer, f.err
}

func (f *fakeEngine) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closes++
	return nil
}

func (f *fakeEngine) closed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closes
}

func (f *fakeEngine) open(_ context.Context, o Open) (Engine, Ready, error) {
	r := Ready{}
	for _, p := range o.Ports {
		if p.Interface == "missing" {
			return nil, Ready{}, errors.New("there is no interface missing")
		}
		r.Ports = append(r.Ports, PortInfo{Name: p.Interface, MAC: "02:00:00:00:00:01", Queues: 1, MaxFrame: 1514})
	}
	return f, r, nil
}

var twoPorts = Open{Ports: []PortSpec{{Kind: AFPacket, Interface: "a"}, {Kind: AFPacket, Interface: "b"}}}

var oneStream = engine.Request{Streams: []engine.Stream{{From: 0, To: 1, Traffic: providers.Traffic{FrameSize: 64}}}, Load: 1000, Duration: time.Second}

// pair is a client and a server that talk over a pipe. served is what Serve returned.
func pair(t *testing.T, f *fakeEngine, limit time.Duration) (client *link, served <-chan error) {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(context.Background(), newLink(b, limit), f.open) }()
	l := newLink(a, limit)
	t.Cleanup(l.close)
	return l, done
}

// within waits for something that must come soon.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came within 30 s")
		panic("")
	}
}

func TestTrialsOverTheWire(t *testing.T) {
	f := &fakeEngine{answer: engine.Result{Directions: []providers.Direction{{Sent: 1000, Received: 999}}, Duration: time.Second, Behind: 2}}
	l, served := pair(t, f, time.Minute)
	c, err := connect(t.Context(), l, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	want := Ready{Ports: []PortInfo{{Name: "a", MAC: "02:00:00:00:00:01", Queues: 1, MaxFrame: 1514}, {Name: "b", MAC: "02:00:00:00:00:01", Queues: 1, MaxFrame: 1514}}}
	if d := cmp.Diff(want, c.Ready()); d != "" {
		t.Error(d)
	}
	for range 3 {
		got, err := c.Run(t.Context(), oneStream, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(f.answer, got); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff([]engine.Request{oneStream, oneStream, oneStream}, f.ran); d != "" {
		t.Error(d)
	}
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := within(t, served); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
	if f.closed() != 1 {
		t.Errorf("the engine was closed %d times", f.closed())
	}
	if _, err := c.Run(t.Context(), oneStream, nil, 0); err == nil {
		t.Error("a closed client ran a trial")
	}
}

func TestOpenFails(t *testing.T) {
	f := &fakeEngine{}
	l, served := pair(t, f, time.Minute)
	_, err := connect(t.Context(), l, Open{Ports: []PortSpec{{Kind: AFPacket, Interface: "missing"}}})
	if err == nil || err.Error() != "there is no interface missing" {
		t.Error(err)
	}
	if err := within(t, served); err != nil {
		t.Error(err)
	}
	if f.closed() != 0 {
		t.Error("closed what was not open")
	}
}

// An engine's error ends the trial, not the worker; and what was counted comes with it.
func TestTrialFails(t *testing.T) {
	f := &fakeEngine{err: errors.New("the link went down"), answer: engine.Result{Behind: 7}}
	l, _ := pair(t, f, time.Minute)
	c, err := connect(t.Context(), l, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := c.Run(t.Context(), oneStream, nil, 0)
		if err == nil || err.Error() != "the link went down" || res.Behind != 7 {
			t.Errorf("%+v, %v", res, err)
		}
	}
	bad := oneStream
	bad.Load = -1
	if _, err := c.Run(t.Context(), bad, nil, 0); !errors.Is(err, errUnsendable) {
		t.Errorf("a negative load: %v", err)
	}
	f.err = nil
	if _, err := c.Run(t.Context(), oneStream, nil, 0); err != nil {
		t.Errorf("a later trial: %v", err)
	}
}

func TestCancelStopsTheTrial(t *testing.T) {
	f := &fakeEngine{hold: true, started: make(chan struct{}, 1), answer: engine.Result{Directions: []providers.Direction{{Sent: 5}}}}
	l, _ := pair(t, f, time.Minute)
	c, err := connect(t.Context(), l, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-f.started; cancel() }()
	res, err := c.Run(ctx, oneStream, nil, 0)
	if !errors.Is(err, context.Canceled) || len(res.Directions) != 1 || res.Directions[0].Sent != 5 {
		t.Errorf("%+v, %v", res, err)
	}
	f.hold = false
	if _, err := c.Run(t.Context(), oneStream, nil, 0); err != nil {
		t.Errorf("after a cancelled trial: %v", err)
	}
}

func TestOneTrialAtATime(t *testing.T) {
	f := &fakeEngine{hold: true, started: make(chan struct{}, 1)}
	l, _ := pair(t, f, time.Minute)
	c, err := connect(t.Context(), l, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := c.Run(ctx, oneStream, nil, 0); first <- err }()
	within(t, f.started)
	if _, err := c.Run(t.Context(), oneStream, nil, 0); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second trial: %v", err)
	}
	cancel()
	within(t, first)
}

// Whoever calls Run is asked to disturb, wherever the engine is.
func TestDisturb(t *testing.T) {
	open := func(t *testing.T, f *fakeEngine) Tester {
		l, _ := pair(t, f, time.Minute)
		c, err := connect(t.Context(), l, twoPorts)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Run("works", func(t *testing.T) {
		f := &fakeEngine{hold: true, started: make(chan struct{}, 1), answer: engine.Result{Behind: 1}}
		x := open(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		res, err := x.Run(ctx, oneStream, func(context.Context) error {
			calls++
			<-f.started // the stream is going on
			cancel()    // which is how the fake stream ends
			return nil
		}, 7*time.Millisecond)
		if calls != 1 || res.Behind != 1 || !errors.Is(err, context.Canceled) || f.after != 7*time.Millisecond {
			t.Errorf("%d calls after %s, %+v, %v", calls, f.after, res, err)
		}
	})
	t.Run("fails", func(t *testing.T) {
		broken := errors.New("the switch does not restart")
		f := &fakeEngine{hold: true, started: make(chan struct{}, 2), answer: engine.Result{Behind: 1}}
		x := open(t, f)
		res, err := x.Run(t.Context(), oneStream, func(context.Context) error { return broken }, 0)
		if !errors.Is(err, broken) || res.Behind != 1 {
			t.Errorf("want the error of the disturbance: %+v, %v", res, err)
		}
		f.hold = false
		if _, err := x.Run(t.Context(), oneStream, nil, 0); err != nil {
			t.Errorf("a later trial: %v", err)
		}
	})
	t.Run("is not due", func(t *testing.T) {
		f := &fakeEngine{err: errors.New("the link went down")}
		x := open(t, f)
		if _, err := x.Run(t.Context(), oneStream, func(context.Context) error { panic("never") }, time.Hour); err == nil || err.Error() != "the link went down" {
			t.Error(err)
		}
	})
	t.Run("takes until the worker goes", func(t *testing.T) {
		a, b := net.Pipe()
		f := &fakeEngine{hold: true, started: make(chan struct{}, 1)}
		go func() { _ = serve(context.Background(), newLink(b, time.Minute), f.open) }()
		c, err := connect(t.Context(), newLink(a, time.Minute), twoPorts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Run(t.Context(), oneStream, func(ctx context.Context) error {
			b.Close()
			<-ctx.Done()
			return ctx.Err()
		}, 0)
		if err == nil || errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestLocal(t *testing.T) {
	f := &fakeEngine{answer: engine.Result{Behind: 1}}
	if _, err := Local(t.Context(), Open{}, f.open); err == nil {
		t.Error("no ports were opened well")
	}
	l, err := Local(t.Context(), twoPorts, f.open)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := l.Run(t.Context(), oneStream, nil, 0); err != nil || res.Behind != 1 || len(l.Ready().Ports) != 2 {
		t.Errorf("%+v, %v, %+v", res, err, l.Ready())
	}
	if err := l.Close(t.Context()); err != nil || f.closed() != 1 {
		t.Errorf("%v, closed %d times", err, f.closed())
	}
}

// A client that goes away in the middle of a trial takes the stream and the ports with it.
func TestClientGoes(t *testing.T) {
	f := &fakeEngine{hold: true, started: make(chan struct{}, 1)}
	l, served := pair(t, f, time.Minute)
	c, err := connect(t.Context(), l, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = c.Run(context.Background(), oneStream, nil, 0) }()
	within(t, f.started)
	l.conn.Close()
	if err := within(t, served); err != nil {
		t.Error(err)
	}
	if f.closed() != 1 {
		t.Error("the ports are open still")
	}
}

// A network that swallows everything is noticed by silence.
func TestSilentClient(t *testing.T) {
	f := &fakeEngine{}
	a, b := net.Pipe()
	defer a.Close()
	go func() { _, _ = io.Copy(io.Discard, a) }()
	done := make(chan error, 1)
	go func() { done <- serve(context.Background(), newLink(b, 20*time.Millisecond), f.open) }()
	if err := within(t, done); !errors.Is(err, errSilent) {
		t.Error(err)
	}
}

func TestSilentWorker(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	go func() { _, _ = io.Copy(io.Discard, b) }()
	if _, err := connect(t.Context(), newLink(a, 20*time.Millisecond), twoPorts); !errors.Is(err, errSilent) {
		t.Error(err)
	}
}

// Pings keep a connection alive on which nothing else is said.
func TestQuietTrialIsNotSilence(t *testing.T) {
	f := &fakeEngine{hold: true, started: make(chan struct{}, 1)}
	l, _ := pair(t, f, 2*time.Second)
	c, err := connect(t.Context(), l, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := c.Run(ctx, oneStream, nil, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestWorkerGoes(t *testing.T) {
	a, b := net.Pipe()
	f := &fakeEngine{hold: true, started: make(chan struct{}, 1)}
	ctx, kill := context.WithCancel(t.Context())
	go func() { _ = serve(ctx, newLink(b, time.Minute), f.open) }()
	c, err := connect(t.Context(), newLink(a, time.Minute), twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-f.started; kill() }()
	// Whether the result is ahead of the end or not: it is no cancelled trial on this side.
	if _, err := c.Run(t.Context(), oneStream, nil, 0); err == nil || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := c.Run(t.Context(), oneStream, nil, 0); err == nil || !strings.Contains(err.Error(), "worker") {
		t.Error(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a client may not say ends the connection, with the reason.
func TestServerRefuses(t *testing.T) {
	hi := message{Hello: &hello{Version: version}}
	for _, c := range []struct {
		say []message
		raw string
		why string
	}{
		{say: []message{{Open: &twoPorts}}, why: "open before hello"},
		{say: []message{hi, {Run: &run{Request: oneStream}}}, why: "run does not belong here"},
		{say: []message{hi, {Open: &twoPorts}, {Open: &twoPorts}}, why: "message open "}, // while they are opened, or after,
		{say: []message{hi, {Ready: &Ready{}}}, why: "ready does not belong here"},
		{raw: "GET / HTTP/1.1\n", why: "not understood"},
		{raw: `{"hello":{"version":99}}` + "\n", why: "speaks version 99"},
		{raw: strings.Repeat(" ", maxLine+1) + "\n", why: "too long"},
	} {
		f := &fakeEngine{}
		l, served := pair(t, f, time.Minute)
		go func() {
			for _, m := range c.say {
				_ = l.send(m)
			}
			_, _ = io.WriteString(l.conn, c.raw)
		}()
		told := ""
		for m := range l.in {
			if m.Error != nil {
				told = m.Error.Error
			}
		}
		if err := within(t, served); err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(told, c.why) {
			t.Errorf("%v %.30q: ended with %v, told %q; want %q", c.say, c.raw, err, told, c.why)
		}
	}
}

// What a worker may not say breaks the client, not the test.
func TestClientRefuses(t *testing.T) {
	hi := message{Hello: &hello{Version: version}}
	for _, say := range [][]message{
		{{Ready: &Ready{}}},
		{hi, {Ready: &Ready{}}}, // without ports
		{hi, hi},
		{hi, {Due: &struct{}{}}},
	} {
		a, b := net.Pipe()
		w := newLink(b, time.Minute)
		go func() {
			for _, m := range say {
				_ = w.send(m)
			}
		}()
		go func() {
			for range w.in {
			}
		}()
		if _, err := connect(t.Context(), newLink(a, time.Minute), twoPorts); err == nil || !strings.Contains(err.Error(), "not expected") {
			t.Errorf("%v: %v", say, err)
		}
		w.close()
	}
}

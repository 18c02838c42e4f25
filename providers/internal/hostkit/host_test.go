package hostkit_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"plumb/providers"
	"plumb/providers/internal/hostkit"
)

// nothing is a connection that does nothing and notes when it is closed.
type nothing struct{ log *[]string }

func (nothing) Run(context.Context, providers.Cmd) (providers.Result, error) {
	return providers.Result{}, nil
}
func (nothing) ReadFiles(context.Context, ...string) (map[string][]byte, error) { return nil, nil }
func (nothing) WriteFile(context.Context, string, []byte, fs.FileMode) error    { return nil }
func (nothing) Start(context.Context, providers.Process) error                  { return nil }
func (nothing) Dial(context.Context, string, string) (net.Conn, error)          { return nil, nil }
func (n nothing) Close() error                                                  { *n.log = append(*n.log, "conn"); return nil }

type closer struct {
	name string
	log  *[]string
}

func (c closer) Close() error { *c.log = append(*c.log, c.name); return nil }

func noFacts(context.Context, providers.Conn) (*providers.Facts, error) {
	return nil, errors.New("no facts")
}

func TestSharedOpensOnce(t *testing.T) {
	h := hostkit.New("dut", nothing{new([]string)}, noFacts)
	var opened atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			v, err := h.Shared(t.Context(), "k", func(context.Context) (any, error) { return opened.Add(1), nil })
			if err != nil || v != int32(1) {
				t.Error(v, err)
			}
		})
	}
	wg.Wait()
}

func TestSharedForgetsErrors(t *testing.T) {
	h := hostkit.New("dut", nothing{new([]string)}, noFacts)
	first := errors.New("first")
	inside, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := h.Shared(t.Context(), "k", func(context.Context) (any, error) { close(inside); <-release; return nil, first })
		if err != first {
			t.Error(err)
		}
	})
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Shared(ctx, "k", nil); !errors.Is(err, context.Canceled) {
		t.Error("who waits does not end with its context:", err)
	}
	close(release)
	wg.Wait()
	if v, err := h.Shared(t.Context(), "k", func(context.Context) (any, error) { return 2, nil }); err != nil || v != 2 {
		t.Error(v, err)
	}
}

func TestSharedSurvivesAPanic(t *testing.T) {
	h := hostkit.New("dut", nothing{new([]string)}, noFacts)
	func() {
		defer func() { _ = recover() }()
		_, _ = h.Shared(t.Context(), "k", func(context.Context) (any, error) { panic("x") })
	}()
	if v, err := h.Shared(t.Context(), "k", func(context.Context) (any, error) { return 2, nil }); err != nil || v != 2 {
		t.Error(v, err)
	}
}

func TestCloseInReverse(t *testing.T) {
	var log []string
	h := hostkit.New("dut", nothing{&log}, noFacts)
	_, err := h.Shared(t.Context(), "outer", func(ctx context.Context) (any, error) {
		_, err := h.Shared(ctx, "inner", func(context.Context) (any, error) { return closer{"inner", &log}, nil })
		return closer{"outer", &log}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Close(), h.Close()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(log, []string{"outer", "inner", "conn"}) {
		t.Fatal(log)
	}
	if _, err := h.Shared(t.Context(), "late", nil); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

func TestFactsOnce(t *testing.T) {
	calls := 0
	h := hostkit.New("dut", nothing{new([]string)}, func(ctx context.Context, c providers.Conn) (*providers.Facts, error) {
		calls++
		_, _ = c.ReadFiles(ctx, "/proc/cpuinfo")
		if calls == 1 {
			return nil, errors.New("first")
		}
		return &providers.Facts{Hostname: "h"}, nil
	})
	if _, err := h.Facts(t.Context()); err == nil || err.Error() != "gather facts of dut: first" {
		t.Fatal(err)
	}
	for range 2 {
		if f, err := h.Facts(t.Context()); err != nil || f.Hostname != "h" {
			t.Fatal(f, err)
		}
	}
	if calls != 2 || h.Reads().Files != 2 {
		t.Fatal(calls, h.Reads())
	}
}

func TestCounts(t *testing.T) {
	h := hostkit.New("dut", nothing{new([]string)}, noFacts)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			ctx, c := t.Context(), h.Conn()
			_, _ = c.Run(ctx, providers.Cmd{})
			_ = c.Start(ctx, providers.Process{})
			_, _ = c.ReadFiles(ctx)
			_ = c.WriteFile(ctx, "", nil, 0)
			_, _ = c.Dial(ctx, "", "")
			h.Count(providers.Reads{OVSDB: 1, Unixctl: 2})
		})
	}
	wg.Wait()
	got := h.Reads()
	if got.Rounds < 5 || got.Rounds > 50 { // how far they ran side by side is chance
		t.Errorf("%d rounds", got.Rounds)
	}
	got.Rounds = 0
	if want := (providers.Reads{Commands: 20, Files: 10, Writes: 10, Dials: 10, OVSDB: 10, Unixctl: 20}); got != want {
		t.Fatal(got)
	}
}

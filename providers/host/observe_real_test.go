package host

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/marked"
)

// TestRealObserver watches this machine while a load runs on CPU 0.
func TestRealObserver(t *testing.T) {
	real(t)
	h := local(t)
	defer h.Close()
	stop, err := Load{}.Start(t.Context(), h, loadMark(), loadConfig(map[string]cty.Value{"kind": str("cpu"), "cores": str("0")}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	finish, err := Observer{}.Observe(t.Context(), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	up := func() float64 {
		files, err := h.Conn().ReadFiles(t.Context(), "/proc/uptime")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(files["/proc/uptime"]), " ")
		v, err := strconv.ParseFloat(first, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	end := up() + 1
	if err := marked.Poll(t.Context(), time.Minute, func() (bool, error) { return up() >= end, nil }); err != nil {
		t.Fatal(err)
	}
	obs, err := finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	find := func(kind, subject, metric string) float64 {
		for _, o := range obs {
			if o.Kind == kind && strings.HasPrefix(o.Subject, subject) {
				for _, m := range o.Metrics {
					if m.Name == metric {
						return m.Value
					}
				}
			}
		}
		t.Errorf("no %s of %s %s in:\n%s", metric, kind, subject, print(obs))
		return 0
	}
	if find("cpu", "core 0", "busy") <= 0 || find("irq", "core 0", "interrupts") <= 0 || find("thread", "stress-ng", "cpu") <= 0 {
		t.Errorf("nothing happened on core 0:\n%s", print(obs))
	}
	if r := h.Reads(); r.Files == 0 {
		t.Errorf("reads %+v", r)
	}
}

// BenchmarkRealObserve is what one reading costs, in time and memory.
func BenchmarkRealObserve(b *testing.B) {
	h := local(nil)
	defer h.Close()
	b.ReportAllocs()
	for b.Loop() {
		finish, err := Observer{}.Observe(b.Context(), h, []providers.Subject{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := finish(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

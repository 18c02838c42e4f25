package dpdk

import (
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/providers"
	"plumb/providers/conformance"
)

// A VNF is counted, and restarted as it was.
func TestCountAndReset(t *testing.T) {
	open := faked(t)
	h := open(t)
	defer h.Close()
	countAndReset(t, h)
}

func TestRealCountAndReset(t *testing.T) {
	real(t)
	h := local(t)
	defer h.Close()
	countAndReset(t, h)
}

func countAndReset(t *testing.T, h providers.Host) {
	typ := NewTestpmd()
	// net_null receives without end and frees what it is given to send.
	c := config(map[string]cty.Value{"memory": cty.ListVal([]cty.Value{cty.NumberIntVal(64)})})
	if err := create(t, h, c); err != nil {
		t.Fatal(err)
	}
	mark := providers.Mark{Testbed: "t", Address: "dpdk_testpmd.x"}
	v := complete(conformance.Desired(&typ.Schema().Block, c), mark, nil)
	sub := providers.Subject{Addr: addrs.Instance{Resource: addrs.Resource{Type: "dpdk_testpmd", Name: "x"}}, Value: v}
	defer func() {
		if err := newInstance(h, mark).stop(t.Context(), testpmdSpec(v, mark)); err != nil {
			t.Error(err)
		}
		wantNothingLeft(t, h)
	}()
	count := func() {
		t.Helper()
		got, err := typ.Count(t.Context(), h, []providers.Subject{sub})
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := got[0].Drops["tx_queue_full"]; !ok || n != 0 || !got[0].Through {
			t.Errorf("counters %+v", got[0])
		}
	}
	count()
	for _, kind := range typ.Resets() {
		was, err := newInstance(h, mark).find(t.Context())
		if err != nil || was == nil {
			t.Fatalf("find: %v, %v", was, err)
		}
		if err := typ.Reset(t.Context(), h, mark, sub, kind); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		is, err := newInstance(h, mark).find(t.Context())
		if err != nil || is == nil || is.pid == was.pid || !slices.Equal(is.argv, was.argv) {
			t.Errorf("after %s: %+v, %v; before: %+v", kind, is, err, was)
		}
		count()
	}
	if err := typ.Reset(t.Context(), h, mark, sub, "reboot"); err == nil {
		t.Error("a reset that it does not know is taken")
	}
}

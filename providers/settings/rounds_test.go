package settings

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"plumb/providers"
	"plumb/providers/conformance"
)

// A look at hundreds of instances, ten at a time as the plan does it, costs few round trips.
func TestRoundTrips(t *testing.T) {
	const instances = 200
	for _, c := range []struct {
		typ            providers.Resource
		given          func(i int) attrs
		files, command int // at most
	}{
		{Sysctl{}, func(i int) attrs {
			return attrs{"key": str([]string{"net.core.rmem_max", "net.core.wmem_max", "vm.swappiness", "net.ipv4.tcp_rmem", "net.ipv4.conf.all.rp_filter", "net.ipv4.conf.eth0.rp_filter"}[i%6]), "value": str("1")}
		}, 4, 0},
		{Module{}, func(int) attrs { return attrs{"name": str("tcp-cubic")} }, 2, 0},
		{Service{}, func(int) attrs { return attrs{"name": str("chrony")} }, 0, 3},
		{Package{}, func(int) attrs { return attrs{"names": strs("hello")} }, 0, 1},
		{Mount{}, func(i int) attrs {
			return attrs{"target": str(fmt.Sprintf("/mnt/%d", i)), "source": str("x"), "type": str("tmpfs")}
		}, 1, 0},
		{IRQAffinity{}, func(i int) attrs { return attrs{"device": str(fmt.Sprintf("eth%d", i)), "cpus": str("0")} }, 1, 0},
		{CPUPower{}, func(int) attrs { return attrs{"governor": str("performance")} }, 1, 0},
	} {
		w := irqWorld(t)
		h := w.open(t)
		if _, err := h.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := h.Reads()
		var g errgroup.Group
		g.SetLimit(10)
		for i := range instances {
			g.Go(func() error {
				_, err := c.typ.Read(t.Context(), providers.ReadRequest{Host: h, Mark: testMark(c.typ), Prior: conformance.Desired(&c.typ.Schema().Block, c.given(i))})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if r := h.Reads(); r.Files-before.Files > c.files || r.Commands-before.Commands > c.command || r.Rounds-before.Rounds > 4 {
			t.Errorf("%s: %d instances cost %+v", c.typ.Schema().Type, instances, r)
		}
		h.Close()
	}
}

// Files are of any folder, and are looked at together as they come.
func TestFilesAreGathered(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	before := h.Reads()
	var g errgroup.Group
	for i := range 200 {
		g.Go(func() error {
			_, err := File{}.Read(t.Context(), providers.ReadRequest{Host: h, Prior: conformance.Desired(&File{}.Schema().Block, attrs{"path": str(fmt.Sprintf("/etc/%d", i)), "content": str("")})})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if r := h.Reads(); r.Commands-before.Commands > 100 {
		t.Errorf("200 files were looked at by %d commands", r.Commands-before.Commands)
	}
}

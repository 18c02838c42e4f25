package dpdk

import (
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/providers"
)

// text is a known string attribute; "" for null and unknown.
func text(obj cty.Value, attr string) string {
	if v := obj.GetAttr(attr); v.IsKnown() && !v.IsNull() {
		return v.AsString()
	}
	return ""
}

// number is a known number attribute; def for null and unknown.
func number(obj cty.Value, attr string, def int64) int64 {
	if v := obj.GetAttr(attr); v.IsKnown() && !v.IsNull() {
		n, _ := v.AsBigFloat().Int64()
		return n
	}
	return def
}

// truth is a known bool attribute; def for null and unknown.
func truth(obj cty.Value, attr string, def bool) bool {
	if v := obj.GetAttr(attr); v.IsKnown() && !v.IsNull() {
		return v.True()
	}
	return def
}

func flag(obj cty.Value, attr string) *bool {
	if v := obj.GetAttr(attr); v.IsKnown() && !v.IsNull() {
		b := v.True()
		return &b
	}
	return nil
}

func elements(v cty.Value) []cty.Value {
	if !v.IsKnown() || v.IsNull() {
		return nil
	}
	return v.AsValueSlice()
}

func texts(obj cty.Value, attr string) []string {
	var out []string
	for _, v := range elements(obj.GetAttr(attr)) {
		if v.IsKnown() && !v.IsNull() {
			out = append(out, v.AsString())
		}
	}
	return out
}

func numbers(obj cty.Value, attr string) []int64 {
	var out []int64
	for _, v := range elements(obj.GetAttr(attr)) {
		n := int64(0)
		if v.IsKnown() && !v.IsNull() {
			n, _ = v.AsBigFloat().Int64()
		}
		out = append(out, n)
	}
	return out
}

// cores are the known CPUs of a list; none when it is null, unknown or wrong, which validation has told.
func cores(obj cty.Value) []int {
	s, err := cpuset.Parse(text(obj, "cores"))
	if err != nil {
		return nil
	}
	return s.List()
}

// testpmdSpec decodes a dpdk_testpmd. Unknown parts are as if they were null.
func testpmdSpec(v cty.Value, mark providers.Mark) spec {
	s := spec{
		cores: cores(v), main: int(number(v, "main_core", -1)), mode: text(v, "forward_mode"), memory: numbers(v, "memory"), prefix: text(v, "file_prefix"),
		mbufs: number(v, "mbufs", 8192), rxq: number(v, "rxq", 0), txq: number(v, "txq", 0), rxd: number(v, "rxd", 0), txd: number(v, "txd", 0), burst: number(v, "burst", 32),
		topo: text(v, "port_topology"), oneFile: truth(v, "single_file_segments", true), inMem: truth(v, "in_memory", true), auto: true,
		eal: texts(v, "extra_eal"), app: texts(v, "extra_args"),
	}
	if s.prefix == "" {
		s.prefix = shorten(mark.Testbed, mark.Address)
	}
	pci, queues := false, int64(1)
	for _, p := range elements(v.GetAttr("port")) {
		x := port{socket: text(p, "vhost_user"), server: truth(p, "server", true), queues: number(p, "queues", 1), packed: flag(p, "packed"), mrgRxbuf: flag(p, "mrg_rxbuf"),
			queueSize: number(p, "queue_size", 0), mac: text(p, "mac"), peer: text(p, "peer_mac"), vdev: text(p, "vdev"), pci: text(p, "pci")}
		pci = pci || x.pci != ""
		if x.socket != "" {
			queues = max(queues, x.queues)
		}
		s.ports = append(s.ports, x)
	}
	s.noPCI = truth(v, "no_pci", !pci)
	if queues > 1 {
		if s.rxq == 0 {
			s.rxq = queues
		}
		if s.txq == 0 {
			s.txq = queues
		}
	}
	return s
}

func stringList(l []string) cty.Value {
	if len(l) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	out := make([]cty.Value, len(l))
	for i, s := range l {
		out[i] = cty.StringVal(s)
	}
	return cty.ListVal(out)
}

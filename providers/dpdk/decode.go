package dpdk

import (
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

func flag(obj cty.Value, name string) *bool {
	if v := obj.GetAttr(name); v.IsKnown() && !v.IsNull() {
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

func texts(obj cty.Value, name string) []string {
	var out []string
	for _, v := range elements(obj.GetAttr(name)) {
		if v.IsKnown() && !v.IsNull() {
			out = append(out, v.AsString())
		}
	}
	return out
}

func numbers(obj cty.Value, name string) []int64 {
	var out []int64
	for _, v := range elements(obj.GetAttr(name)) {
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
	s, err := cpuset.Parse(attr.Text(obj, "cores"))
	if err != nil {
		return nil
	}
	return s.List()
}

// testpmdSpec decodes a dpdk_testpmd. Unknown parts are as if they were null.
func testpmdSpec(v cty.Value, mark providers.Mark) spec {
	s := spec{
		cores: cores(v), main: int(attr.Number(v, "main_core", -1)), mode: attr.Text(v, "forward_mode"), memory: numbers(v, "memory"), prefix: attr.Text(v, "file_prefix"),
		mbufs: attr.Number(v, "mbufs", 8192), rxq: attr.Number(v, "rxq", 0), txq: attr.Number(v, "txq", 0), rxd: attr.Number(v, "rxd", 0), txd: attr.Number(v, "txd", 0), burst: attr.Number(v, "burst", 32),
		topo: attr.Text(v, "port_topology"), oneFile: attr.Truth(v, "single_file_segments", true), inMem: attr.Truth(v, "in_memory", true), auto: true,
		eal: texts(v, "extra_eal"), app: texts(v, "extra_args"),
	}
	if s.prefix == "" {
		s.prefix = shorten(mark.Testbed, mark.Address)
	}
	pci, queues := false, int64(1)
	for _, p := range elements(v.GetAttr("port")) {
		x := port{socket: attr.Text(p, "vhost_user"), server: attr.Truth(p, "server", true), queues: attr.Number(p, "queues", 1), packed: flag(p, "packed"), mrgRxbuf: flag(p, "mrg_rxbuf"),
			queueSize: attr.Number(p, "queue_size", 0), mac: attr.Spelled(p, "mac", schema.MAC), peer: attr.Spelled(p, "peer_mac", schema.AnyMAC), vdev: attr.Text(p, "vdev"), pci: attr.Text(p, "pci")}
		pci = pci || x.pci != ""
		if x.socket != "" {
			queues = max(queues, x.queues)
		}
		s.ports = append(s.ports, x)
	}
	s.noPCI = attr.Truth(v, "no_pci", !pci)
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

package ovs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/hostkit"
)

func (switchType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Problems: switchProblems(req.Desired)}
	attrs := attrsOf(req.Proposed)
	attrs["running"] = cty.True
	dpdk := req.Desired.GetAttr("dpdk")
	if !dpdk.IsNull() && attr.Text(dpdk, "init") == "true" {
		attrs["dpdk_initialized"] = cty.True
	}
	res.Planned = cty.ObjectVal(attrs)
	if req.Host == nil {
		return res, nil
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	name := req.Host.Name()
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return res, err
	}
	if !facts.Root {
		b, err := s.installed(ctx)
		if err != nil {
			return res, err
		}
		res.Problems = append(append(res.Problems, hostkit.NotRoot(name)), lacking(name, b, dpdk)...)
		return res, nil
	}
	w, err := s.look(ctx)
	if err != nil {
		return res, err
	}
	version := w.root.ovsVersion
	if !w.daemon || !dpdk.IsNull() && !w.root.dpdk {
		b, err := s.installed(ctx)
		if err != nil {
			return res, err
		}
		version = b.ovs
		res.Problems = append(res.Problems, lacking(name, b, dpdk)...)
	}
	res.Problems = append(append(res.Problems, tooOld(req.Desired, version, name)...), unlimited(dpdk, name)...)
	set, remove := configChange(w.root.otherConfig, switchKeys(req.Prior), switchKeys(req.Desired), nil)
	switch {
	case !w.daemon:
		res.Effects = append(res.Effects, "starts Open vSwitch on "+name)
	case restarts(set, remove) || !dpdk.IsNull() && !w.root.dpdk && attr.Text(dpdk, "init") == "true" || w.root.external[keyRestart] != "":
		res.Effects = append(res.Effects, "restarts ovs-vswitchd on "+name)
		res.Cost = schema.ServiceRestart
	}
	if w.daemon && res.Cost < schema.ServiceRestart && !req.Prior.IsNull() {
		for _, name := range []string{"ovs_version", "dpdk_version", "datapath_types", "iface_types"} { // the same process goes on
			if v := req.Prior.GetAttr(name); !v.IsNull() {
				attrs[name] = v
			}
		}
		res.Planned = cty.ObjectVal(attrs)
	}
	return res, nil
}

// unlimited warns of what the arithmetic of hugepages cannot hold: without dpdk-socket-limit, whose default became "no limit" with OVS 2.17,
// socket_mem is only what OVS starts with.
func unlimited(dpdk cty.Value, host string) []providers.Problem {
	if dpdk.IsNull() || dpdk.GetAttr("socket_mem").IsNull() || !dpdk.GetAttr("socket_limit").IsNull() {
		return nil
	}
	return []providers.Problem{{Warning: true, Path: at("dpdk", "socket_mem"), Summary: "Open vSwitch may take more hugepages than socket_mem",
		Detail: "When ports come up it takes what is free for packet buffers: 262,144 of them for each MTU and node, 788 MB at MTU 1500. What starts later on " + host +
			" may then find too few. Set socket_limit to the same as socket_mem to hold it there."}}
}

// lacking says which package has to be installed.
func lacking(host string, b *build, dpdk cty.Value) []providers.Problem {
	switch {
	case b.ovs == "" && dpdk.IsNull():
		return []providers.Problem{missing(host, "ovs-vswitchd", "openvswitch-switch", at())}
	case !dpdk.IsNull() && !b.withDPDK():
		return []providers.Problem{missing(host, "ovs-vswitchd with DPDK", "openvswitch-switch-dpdk", at("dpdk"))}
	}
	return nil
}

func missing(host, what, pkg string, path cty.Path) providers.Problem {
	return providers.Problem{Host: host, Path: path, Summary: fmt.Sprintf("%s is not installed on %s", what, host),
		Detail: fmt.Sprintf("%s is not installed on %s: apt-get install %s (Debian, Ubuntu), or the package of that distribution.", what, host, pkg)}
}

// tooOld says which arguments the version does not know.
func tooOld(d cty.Value, version, host string) []providers.Problem {
	if version == "" {
		return nil
	}
	var out []providers.Problem
	check := func(obj cty.Value, opts []option, prefix cty.Path) {
		if obj.IsNull() || !obj.IsKnown() {
			return
		}
		for _, o := range opts {
			want, ok := strings.CutPrefix(o.since, "OVS ")
			if ok && !obj.GetAttr(o.attr).IsNull() && olderThan(version, want) {
				out = append(out, providers.Problem{Path: append(prefix.Copy(), cty.GetAttrStep{Name: o.attr}), Summary: "Open vSwitch is too old",
					Detail: fmt.Sprintf("%s exists from Open vSwitch %s on; %s has %s, which would ignore it. Remove it, or install a newer one.", o.attr, want, host, version)})
			}
		}
	}
	check(d, datapathOptions(), nil)
	check(d.GetAttr("dpdk"), append(startOptions(), pmdOptions()...), at("dpdk"))
	return out
}

// switchProblems is what can be told wrong from the configuration alone.
func switchProblems(d cty.Value) []providers.Problem {
	all := slices.Concat(startOptions(), pmdOptions(), datapathOptions())
	out := overlaps(d, "other_config", all, nil)
	add := func(path cty.Path, summary, detail string) {
		out = append(out, providers.Problem{Path: path, Summary: summary, Detail: detail})
	}
	if known(d, "n_offload_threads") && !attr.Truth(d, "hw_offload", false) && d.GetAttr("hw_offload").IsKnown() {
		add(at("n_offload_threads"), "hw_offload is missing", "n_offload_threads counts only with hw_offload = true.")
	}
	dpdk := d.GetAttr("dpdk")
	if dpdk.IsNull() || !dpdk.IsKnown() {
		return out
	}
	if !dpdk.GetAttr("socket_mem").IsNull() && !dpdk.GetAttr("alloc_mem").IsNull() {
		add(at("dpdk", "alloc_mem"), "socket_mem and alloc_mem exclude one another", "With both, Open vSwitch uses socket_mem alone. Remove one.")
	}
	if known(dpdk, "pmd_rxq_isolate") && !attr.Truth(dpdk, "pmd_rxq_isolate", false) && dpdk.GetAttr("pmd_rxq_assign").IsKnown() && attr.Text(dpdk, "pmd_rxq_assign") != "group" {
		add(at("dpdk", "pmd_rxq_isolate"), "pmd_rxq_isolate needs pmd_rxq_assign", "pmd_rxq_isolate = false is heeded only with pmd_rxq_assign = \"group\".")
	}
	for name, flags := range map[string][]string{"lcores": {"-l", "--lcores", "-c"}, "socket_mem": {"--socket-mem", "-m"}, "socket_limit": {"--socket-limit"}, "hugepage_dir": {"--huge-dir"}, "alloc_mem": {"-m", "--socket-mem"}} {
		if dpdk.GetAttr(name).IsNull() {
			continue
		}
		for _, word := range strings.Fields(attr.Text(dpdk, "extra")) {
			word, _, _ = strings.Cut(word, "=")
			if slices.Contains(flags, word) {
				add(at("dpdk", "extra"), "One EAL argument twice", fmt.Sprintf("extra has %s, which would win over %s. Set it in one place.", word, name))
			}
		}
	}
	for _, part := range texts(dpdk, "shared_mempool_config") {
		if strings.Trim(part, "0123456789:") != "" {
			add(at("dpdk", "shared_mempool_config"), "Not a pool", fmt.Sprintf("%q: want MTU or MTU:NODE.", part))
		}
	}
	slices.SortStableFunc(out, func(a, b providers.Problem) int { return strings.Compare(a.Detail, b.Detail) })
	return out
}

func (switchType) Claims(ctx context.Context, host providers.Host, planned cty.Value) (providers.Claims, error) {
	c := providers.Claims{Unique: []providers.Unique{{Scope: "switch of the host", Value: "Open vSwitch"}}}
	d := planned.GetAttr("dpdk")
	if d.IsNull() || !d.IsKnown() {
		return c, nil
	}
	for name, use := range map[string]string{"pmd_cores": "PMD", "lcores": "lcore"} {
		if cpus, err := parseCPUs(attr.Text(d, name)); err == nil && len(cpus) > 0 {
			c.Cores = append(c.Cores, providers.CoreClaim{Cores: cpus, Use: use, Polling: name == "pmd_cores", Shared: attr.Truth(d, "share_cores", false), Path: at("dpdk", name)})
		}
	}
	slices.SortFunc(c.Cores, func(a, b providers.CoreClaim) int { return strings.Compare(a.Use, b.Use) })
	size := pageSize(attr.Text(d, "hugepage_size"))
	claim := func(mb int64, node int, attr string) {
		path := at("dpdk", attr)
		if node >= 0 {
			path = append(path, cty.IndexStep{Key: cty.NumberIntVal(int64(node))})
		}
		if mb > 0 {
			h := providers.HugepageClaim{Size: size, Node: node, Bytes: uint64(mb) << 20,
				What: fmt.Sprintf("%s %d MB", strings.ReplaceAll(attr, "_", "-"), mb), Path: path}
			if size > 0 {
				h.Pages = (h.Bytes + size - 1) / size
			}
			c.Hugepages = append(c.Hugepages, h)
		}
	}
	for node, mb := range ints(d, "socket_mem") {
		claim(mb, node, "socket_mem")
	}
	if mb, ok := number(d, "alloc_mem"); ok {
		claim(mb, -1, "alloc_mem")
	}
	return c, nil
}

// pageSize is the size that hugepage_size says; 0: whichever the host provides.
func pageSize(said string) uint64 {
	return map[string]uint64{"2M": 2 << 20, "1G": 1 << 30}[said]
}

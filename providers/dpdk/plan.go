package dpdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/pcidriver"
)

// Plan knows the command line as soon as the arguments and the testbed are known, so that an update shows what will run; and finds what cannot work.
func (t *Testpmd) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	out := req.Proposed.AsValueMap()
	// The testbed has no name before its first state: what is made of it is not known then.
	if req.Desired.GetAttr("file_prefix").IsNull() && req.Mark.Testbed != "" {
		out["file_prefix"] = cty.StringVal(shorten(req.Mark.Testbed, req.Mark.Address))
	}
	delete(out, "command")
	known := cty.ObjectVal(out).IsWhollyKnown()
	out["command"] = cty.UnknownVal(cty.List(cty.String))
	if known {
		out["command"] = stringList(testpmdSpec(cty.ObjectVal(out), req.Mark).argv())
	}
	planned := cty.ObjectVal(out)
	res := providers.PlanResult{Planned: planned, Problems: portProblems(planned)}
	res.Problems = append(res.Problems, coreProblems(planned)...)
	if !req.Prior.IsNull() && !req.Prior.GetAttr("command").RawEquals(out["command"]) {
		res.Effects = []string{"restarts testpmd"}
	}
	if req.Host == nil {
		return res, nil
	}
	more, err := hostProblems(ctx, req.Host, planned, req.Prior.IsNull())
	res.Problems = append(res.Problems, more...)
	return res, err
}

// coreProblems concern cores, which the generator has too.
func coreProblems(v cty.Value) []providers.Problem {
	if c := v.GetAttr("cores"); !c.IsKnown() || c.IsNull() {
		return nil
	}
	have := cores(v)
	if len(have) < 2 {
		return []providers.Problem{{Path: cty.GetAttrPath("cores"), Summary: "Too few cores",
			Detail: fmt.Sprintf("testpmd needs two CPUs or more: one runs its console, the others forward; cores = %q has %d. The one of the console idles and may be shared.", attr.Text(v, "cores"), len(have))}}
	}
	if m := v.GetAttr("main_core"); m.IsKnown() && !m.IsNull() && !slices.Contains(have, int(attr.Number(v, "main_core", -1))) {
		return []providers.Problem{{Path: cty.GetAttrPath("main_core"), Summary: "Main core is not among the cores",
			Detail: fmt.Sprintf("main_core = %d must be one of cores = %q.", attr.Number(v, "main_core", -1), attr.Text(v, "cores"))}}
	}
	return nil
}

func portProblems(v cty.Value) []providers.Problem {
	var out []providers.Problem
	seen := map[string]int{}
	for i, p := range elements(v.GetAttr("port")) {
		at := cty.GetAttrPath("port").IndexInt(i)
		var set []string
		unknown := false
		for _, name := range []string{"vhost_user", "vdev", "pci"} {
			a := p.GetAttr(name)
			unknown = unknown || !a.IsKnown()
			if !a.IsNull() {
				set = append(set, name)
			}
		}
		if len(set) != 1 && !unknown {
			what := "none of vhost_user, vdev and pci"
			if len(set) > 1 {
				what = strings.Join(set, " and ")
			}
			out = append(out, providers.Problem{Path: at, Summary: "Not one kind of port", Detail: fmt.Sprintf("Port %d has %s. Give exactly one of vhost_user, vdev and pci.", i, what)})
		}
		if s := attr.Text(p, "vhost_user"); s != "" {
			if first, ok := seen[s]; ok {
				out = append(out, providers.Problem{Path: at.GetAttr("vhost_user"), Summary: "Socket used twice", Detail: fmt.Sprintf("Ports %d and %d have the same vhost_user socket %s.", first, i, s)})
			}
			seen[s] = i
		}
	}
	return out
}

type installedKey struct{}

// installed asks once a run whether there is a dpdk-testpmd.
func installed(ctx context.Context, h providers.Host) (bool, error) {
	v, err := h.Shared(ctx, installedKey{}, func(ctx context.Context) (any, error) {
		_, err := h.Conn().Run(ctx, providers.Cmd{Args: []string{"which", "dpdk-testpmd"}})
		var exit *providers.ExitError
		if errors.As(err, &exit) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return false, err
	}
	return v.(bool), nil
}

func hostProblems(ctx context.Context, h providers.Host, v cty.Value, create bool) ([]providers.Problem, error) {
	var out []providers.Problem
	f, err := h.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if !f.Root {
		out = append(out, hostkit.NotRoot(h.Name()))
	}
	if create {
		ok, err := installed(ctx, h)
		if err != nil {
			return out, err
		}
		if !ok {
			out = append(out, providers.Problem{Host: h.Name(), Summary: "dpdk-testpmd is not installed",
				Detail: fmt.Sprintf("There is no dpdk-testpmd on %s. On Debian and Ubuntu it is in the package dpdk-dev: apt-get install dpdk-dev.", h.Name())})
		}
	}
	out = append(out, missingCores(f, h.Name(), v)...)
	pci, err := pciProblems(ctx, h, v)
	return append(out, pci...), err
}

func missingCores(f *providers.Facts, host string, v cty.Value) []providers.Problem {
	var online, missing []int
	for _, c := range f.CPUs {
		if c.Online {
			online = append(online, c.ID)
		}
	}
	for _, c := range cores(v) {
		if !slices.Contains(online, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 || len(online) == 0 {
		return nil
	}
	return []providers.Problem{{Path: cty.GetAttrPath("cores"), Summary: "No such CPU",
		Detail: fmt.Sprintf("%s has no CPU %s online. It has %s.", host, joinInts(missing), joinInts(online))}}
}

// pciProblems looks whether the NICs are there.
func pciProblems(ctx context.Context, h providers.Host, v cty.Value) ([]providers.Problem, error) {
	var out []providers.Problem
	for i, p := range elements(v.GetAttr("port")) {
		addr := strings.ToLower(attr.Text(p, "pci"))
		if addr == "" {
			continue
		}
		facts, err := h.Facts(ctx)
		if err != nil {
			return nil, err
		}
		if facts.NIC(addr) == nil {
			out = append(out, providers.Problem{Path: cty.GetAttrPath("port").IndexInt(i).GetAttr("pci"), Summary: "No such NIC",
				Detail: fmt.Sprintf("%s has no NIC at PCI address %s. See host.%s.facts.nics, or lspci -D. Of a virtual function that is still to be made, refer to vf_pci of its nic_sriov.", h.Name(), addr, h.Name())})
		}
	}
	return out, nil
}

// Claims are the cores, hugepages, sockets and the name of DPDK's runtime folder.
func (t *Testpmd) Claims(ctx context.Context, host providers.Host, planned cty.Value) (providers.Claims, error) {
	s := testpmdSpec(planned, providers.Mark{})
	c := resourceClaims(s, "testpmd", attr.Truth(planned, "share_cores", false))
	for i, p := range s.ports {
		at := cty.GetAttrPath("port").IndexInt(i)
		if p.socket != "" {
			c.Sockets = append(c.Sockets, providers.SocketEnd{Socket: p.socket, Server: p.server, Queues: int(p.queues), Path: at.GetAttr("vhost_user")})
		}
		if p.pci != "" {
			pci := strings.ToLower(p.pci)
			c.Unique = append(c.Unique, providers.Unique{Scope: "device of a DPDK application", Value: pci, Path: at.GetAttr("pci")})
			c.Devices = append(c.Devices, providers.DeviceClaim{PCI: pci, Cores: s.forwarding(), Use: "testpmd forwarding", Crossing: attr.Truth(planned, "allow_cross_numa", false), Path: at.GetAttr("pci")})
			facts, err := host.Facts(ctx)
			if err != nil {
				return c, err
			}
			if need, ok := pcidriver.Need(facts, host.Name(), pci); ok {
				need.Path = at.GetAttr("pci")
				c.Needs = append(c.Needs, need)
			}
		}
	}
	if name := attr.Text(planned, "file_prefix"); name != "" {
		c.Unique = append(c.Unique, providers.Unique{Scope: "DPDK file prefix", Value: name, Path: cty.GetAttrPath("file_prefix")})
	}
	return c, nil
}

// resourceClaims are cores and memory of one process.
func resourceClaims(s spec, who string, shared bool) providers.Claims {
	var c providers.Claims
	at := cty.GetAttrPath("cores")
	if len(s.cores) > 0 {
		c.Cores = append(c.Cores,
			providers.CoreClaim{Cores: s.forwarding(), Use: who + " forwarding", Polling: true, Shared: shared, Path: at},
			providers.CoreClaim{Cores: []int{s.mainCore()}, Use: who + " console", Path: at})
	}
	for node, mb := range s.memory {
		if mb > 0 {
			c.Hugepages = append(c.Hugepages, providers.HugepageClaim{Node: node, Bytes: uint64(mb) << 20,
				What: fmt.Sprintf("%s memory %d MB", who, mb), Path: cty.GetAttrPath("memory").IndexInt(node)})
		}
	}
	return c
}

package nic

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
)

type attrs = map[string]cty.Value

func vf(set attrs) cty.Value {
	out := attrs{}
	block := vfBlock()
	for name, a := range block.Attributes {
		if out[name] = cty.NullVal(a.Type); set[name] != cty.NilVal {
			out[name] = set[name]
		}
	}
	return cty.ObjectVal(out)
}

func sriovConfig(pci string) attrs {
	return attrs{"pci": cty.StringVal(pci), "num_vfs": cty.NumberIntVal(3), "vf": cty.MapVal(attrs{
		"0": vf(attrs{"mac": cty.StringVal("02:00:00:00:0A:00"), "trust": cty.True, "vlan": cty.NumberIntVal(5), "qos": cty.NumberIntVal(2), "driver": cty.StringVal("vfio-pci")}),
		"2": vf(attrs{"mac": cty.StringVal("02:00:00:00:0a:02"), "spoofchk": cty.False, "driver": cty.StringVal("kernel")}),
	})}
}

func sriovUpdate(pci string) attrs {
	return attrs{"pci": cty.StringVal(pci), "num_vfs": cty.NumberIntVal(3), "vf": cty.MapVal(attrs{
		"0": vf(attrs{"mac": cty.StringVal("02:00:00:00:0a:00")}),
		"1": vf(attrs{"driver": cty.StringVal("vfio-pci"), "vlan": cty.NumberIntVal(7)}),
		"2": vf(attrs{"mac": cty.StringVal("02:00:00:00:0a:12"), "spoofchk": cty.True}),
	})}
}

const fakePF = "0000:01:00.0"

// sriovCase is nic_sriov on a fake host whose NIC has the given number of functions before.
func sriovCase(t *testing.T, before int) conformance.Case {
	conns := map[string]*fake.Conn{}
	open := func(t *testing.T) providers.Host {
		c := conns[t.Name()]
		if c == nil {
			var err error
			if c, err = fake.Open(t.TempDir()); err != nil {
				t.Fatal(err)
			}
			conns[t.Name()] = c
			if err := c.AddNIC(fake.NIC{PCI: fakePF, ID: "8086:10C9", Driver: "igb", Interface: "ens1", MAC: "52:54:00:00:01:00", Group: 3, VFs: 7}); err != nil {
				t.Fatal(err)
			}
			if before > 0 {
				h := hostkit.New("dut", c, facts)
				write(t, h, pciDir+"/"+fakePF+"/sriov_numvfs", "2")
				run(t, c, "link set dev ens1 vf 1 mac 02:00:00:00:00:99\nlink set dev ens1 vf 1 vlan 9\n")
			}
		}
		return hostkit.New("dut", c, facts)
	}
	return conformance.Case{Type: SRIOV{}, Open: open, Config: sriovConfig(fakePF), Update: sriovUpdate(fakePF), Snapshot: functionsOf(fakePF), Drift: sriovDrift(fakePF, "ens1", before)}
}

func sriovDrift(pci, name string, before int) map[string]func(*testing.T, providers.Host) {
	out := map[string]func(*testing.T, providers.Host){
		"all":   func(t *testing.T, h providers.Host) { write(t, h, pciDir+"/"+pci+"/sriov_numvfs", "0") },
		"trust": func(t *testing.T, h providers.Host) { tryRun(t, h, "link set dev "+name+" vf 0 trust off\n") },
		"address": func(t *testing.T, h providers.Host) {
			tryRun(t, h, "link set dev "+name+" vf 2 mac 02:00:00:00:00:77\n")
		},
	}
	if before > 0 { // else it is the drift that brings their driver's module, which then stays
		out["number"] = func(t *testing.T, h providers.Host) {
			write(t, h, pciDir+"/"+pci+"/sriov_numvfs", "0")
			write(t, h, pciDir+"/"+pci+"/sriov_numvfs", "1")
		}
	}
	return out
}

// tryRun is for a drift that is made twice, the second time perhaps on functions that have gone.
func tryRun(t *testing.T, h providers.Host, batch string) {
	t.Helper()
	_, _ = h.Conn().Run(t.Context(), providers.Cmd{Args: []string{"ip", "-batch", "-"}, Stdin: []byte(batch)})
}

// functionsOf is all that virtual functions are about.
func functionsOf(pci string) func(*testing.T, providers.Host) []string {
	return func(t *testing.T, h providers.Host) []string {
		t.Helper()
		files, err := h.Conn().ReadFiles(t.Context(), pciDir+"/"+pci+"/sriov_numvfs", pciDir+"/"+pci+"/sriov_drivers_autoprobe", pciDir+"/"+pci+"/virtfn*/uevent", pciDir+"/"+pci+"/virtfn*/driver_override", "/proc/modules", loadedDir+"/*")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			text := string(files[name])
			if name == "/proc/modules" {
				text = moduleNames(text)
			}
			out = append(out, name+": "+text)
		}
		res, err := h.Conn().Run(t.Context(), providers.Cmd{Args: []string{"ip", "-j", "-d", "link", "show"}})
		if err != nil {
			t.Fatal(err)
		}
		links, err := parseLinks(res.Stdout)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(links)) {
			for n, v := range links[name] {
				for _, l := range v.lines(name, n, vfSettings{}) {
					out = append(out, l.line)
				}
			}
		}
		return out
	}
}

func moduleNames(text string) string {
	var names []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestSRIOVOnFakeHost(t *testing.T) { conformance.Run(t, sriovCase(t, 0)) }

// Functions that somebody else made come back as they were.
func TestSRIOVOfOthersOnFakeHost(t *testing.T) { conformance.Run(t, sriovCase(t, 2)) }

// A function that nic_sriov makes goes to vfio-pci by a nic_driver, and both go again.
func TestFunctionWithDriver(t *testing.T) {
	c, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddNIC(fake.NIC{PCI: fakePF, ID: "8086:10C9", Driver: "igb", Interface: "ens1", MAC: "52:54:00:00:01:00", Group: 3, VFs: 7}); err != nil {
		t.Fatal(err)
	}
	h := hostkit.New("dut", c, facts)
	before := functionsOf(fakePF)(t, h)
	if _, err := h.Facts(t.Context()); err != nil { // as the plan does, before there are functions
		t.Fatal(err)
	}
	made, undo := created(t, h, SRIOV{}, attrs{"pci": cty.StringVal(fakePF), "num_vfs": cty.NumberIntVal(2)})
	pci := made.GetAttr("vf_pci").AsValueSlice()[1]
	bound, undoBound := created(t, h, Driver{}, attrs{"pci": pci, "driver": cty.StringVal("vfio-pci")})
	files, err := h.Conn().ReadFiles(t.Context(), pciDir+"/"+pci.AsString()+"/uevent")
	if err != nil || property(files[pciDir+"/"+pci.AsString()+"/uevent"], "DRIVER") != "vfio-pci" {
		t.Errorf("%s, %v", files, err)
	}
	wrong := bound.AsValueMap()
	wrong["driver"] = cty.StringVal("uio_pci_generic")
	_, err = Driver{}.Apply(t.Context(), providers.ApplyRequest{Host: h, Prior: bound, Planned: cty.ObjectVal(wrong), Undo: undoBound, Log: func(string) {}})
	if err == nil || !strings.Contains(err.Error(), "is a virtual function, which has message-signalled interrupts only") {
		t.Errorf("a driver that cannot have it: %v", err)
	}
	for _, gone := range []providers.ApplyRequest{{Prior: bound, Undo: undoBound}, {Prior: made, Undo: undo}} {
		typ := providers.Resource(Driver{})
		if gone.Prior.Type().HasAttribute("num_vfs") {
			typ = SRIOV{}
		}
		gone.Host, gone.Planned, gone.Log = h, cty.NullVal(gone.Prior.Type()), func(string) {}
		if _, err := typ.Apply(t.Context(), gone); err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff(before, functionsOf(fakePF)(t, h)); d != "" {
		t.Error(d)
	}
}

// created applies a new instance, without a plan.
func created(t *testing.T, h providers.Host, typ providers.Resource, given attrs) (cty.Value, []byte) {
	t.Helper()
	want := conformance.Desired(&typ.Schema().Block, given)
	req := providers.ApplyRequest{Host: h, Prior: cty.NullVal(want.Type()), Planned: want, Log: func(s string) { t.Log(s) }}
	undo, err := typ.(providers.Preparer).Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Undo = undo
	res, err := typ.Apply(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res.New, undo
}

func TestSRIOVRefusals(t *testing.T) {
	igb := func(pci string, change func(*providers.NIC)) providers.NIC {
		n := providers.NIC{Device: providers.Device{PCI: pci, Driver: "igb"}, Vendor: 0x8086, Product: 0x10c9, TotalVFs: 7, IOMMUGroup: 3}
		if change != nil {
			change(&n)
		}
		return n
	}
	const one, two = "0000:01:10.0", "0000:01:10.2"
	for name, c := range map[string]struct {
		nics    []providers.NIC
		facts   func(*providers.Facts)
		config  attrs
		mine    bool
		summary string
		want    string // part of the detail; "": no refusal
	}{
		"none": {nics: []providers.NIC{igb(fakePF, nil)}},
		"no such NIC": {nics: []providers.NIC{igb("0000:02:00.0", nil)}, summary: "No such NIC",
			want: "dut has no NIC at 0000:01:00.0. Those of it that can have virtual functions: 0000:02:00.0 (up to 7)."},
		"a function": {nics: []providers.NIC{igb(fakePF, func(n *providers.NIC) { n.PF, n.TotalVFs = "0000:01:00.1", 0 })}, summary: "NIC is a virtual function",
			want: "0000:01:00.0 of dut is a virtual function itself, of 0000:01:00.1."},
		"no SR-IOV": {nics: []providers.NIC{igb(fakePF, func(n *providers.NIC) { n.TotalVFs = 0 })}, summary: "NIC cannot have virtual functions",
			want: "0000:01:00.0 of dut (8086:10c9, igb) has no SR-IOV, or it is switched off: look for SR-IOV in the BIOS and in the NIC's firmware"},
		"too many": {nics: []providers.NIC{igb(fakePF, nil)}, config: attrs{"num_vfs": cty.NumberIntVal(8)}, summary: "Too many virtual functions",
			want: "0000:01:00.0 of dut can have 7 virtual functions, and 8 are asked for."},
		"label": {nics: []providers.NIC{igb(fakePF, nil)}, config: attrs{"vf": cty.MapVal(attrs{"2": vf(nil)})}, summary: "No such virtual function",
			want: `The label of a vf block is a number from 0 to 1, since num_vfs is 2. There is none called "2".`},
		"spelling":       {nics: []providers.NIC{igb(fakePF, nil)}, config: attrs{"vf": cty.MapVal(attrs{"01": vf(nil)})}, summary: "No such virtual function", want: `There is none called "01".`},
		"others, unused": {nics: []providers.NIC{igb(fakePF, func(n *providers.NIC) { n.VFs = []string{one} }), igb(one, func(n *providers.NIC) { n.Interfaces = []providers.Interface{{Name: "ens1v0"}} })}},
		"others, in use": {nics: []providers.NIC{igb(fakePF, func(n *providers.NIC) { n.VFs = []string{one, two, "0000:01:10.4"} }), igb(one, func(n *providers.NIC) { n.Driver = "vfio-pci" }),
			igb(two, func(n *providers.NIC) {
				n.Interfaces = []providers.Interface{{Name: "ens1v1", Up: true, Addresses: []string{"192.0.2.1/24"}}}
			})}, summary: "Virtual functions are in use",
			want: "0000:01:00.0 of dut has 3 virtual functions, which Plumb has not made, and 2 are wanted. The kernel changes the number only from 0, so all of them would go, and these are in use: 0 (0000:01:10.0: on vfio-pci), 1 (0000:01:10.2: ens1v1 with 192.0.2.1/24). Free them, or ask for 3."},
		"our own, in use": {mine: true, nics: []providers.NIC{igb(fakePF, func(n *providers.NIC) { n.VFs = []string{one} }), igb(one, func(n *providers.NIC) { n.Driver = "vfio-pci" })}},
		"no IOMMU": {nics: []providers.NIC{igb(fakePF, nil)}, facts: func(f *providers.Facts) { f.IOMMU.Enabled = false }, config: attrs{"vf": cty.MapVal(attrs{"1": vf(attrs{"driver": cty.StringVal("vfio-pci")})})},
			summary: "There is no IOMMU", want: "dut has no IOMMU groups"},
		"interrupts": {nics: []providers.NIC{igb(fakePF, nil)}, config: attrs{"vf": cty.MapVal(attrs{"1": vf(attrs{"driver": cty.StringVal("uio_pci_generic")})})},
			summary: "uio_pci_generic needs an interrupt line", want: "Virtual function 1 of 0000:01:00.0 of dut is a virtual function, which has message-signalled interrupts only"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &providers.Facts{Root: true, NICs: c.nics, IOMMU: providers.IOMMU{Enabled: true}}
			if c.facts != nil {
				c.facts(f)
			}
			conn, err := fake.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			h := hostkit.New("dut", conn, func(context.Context, providers.Conn) (*providers.Facts, error) { return f, nil })
			given := attrs{"pci": cty.StringVal(fakePF), "num_vfs": cty.NumberIntVal(2)}
			maps.Copy(given, c.config)
			want := conformance.Desired(&SRIOV{}.Schema().Block, given)
			prior := cty.NullVal(want.Type())
			if c.mine {
				prior = want
			}
			res, err := SRIOV{}.Plan(t.Context(), providers.PlanRequest{Host: h, Prior: prior, Desired: want, Proposed: want})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range res.Problems {
				if !p.Warning {
					got = append(got, p.Summary+": "+p.Detail)
				}
			}
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("refused: %q", got)
			case c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.summary+": ") || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want %q: %q", got, c.summary, c.want)
			}
		})
	}
}

func TestParseLinks(t *testing.T) {
	yes, no := true, false
	got, err := parseLinks([]byte(`[{"ifname":"lo"},{"ifname":"ens2","vfinfo_list":[{"vf":0,"link_type":"ether","address":"02:00:00:00:00:01","broadcast":"ff:ff:ff:ff:ff:ff","vlan_list":[{"vlan":5,"qos":2}],
		"rate":{"max_tx":100,"min_tx":10},"spoofchk":false,"link_state":"auto","trust":true},{"vf":1,"mac":"00:00:00:00:00:00","vlan":7,"tx_rate":3,"vlan_list":[{}]}]}]`))
	want := map[string][]vfSettings{"ens2": {{MAC: "02:00:00:00:00:01", VLAN: 5, QoS: 2, Trust: &yes, Spoof: &no, Link: "auto", MinRate: 10, MaxRate: 100}, {MAC: "00:00:00:00:00:00", MaxRate: 3}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(err, d)
	}
	if _, err := parseLinks([]byte(`[{"ifname":"x","vfinfo_list":[{"vf":1}]}]`)); err == nil {
		t.Error("a gap is taken")
	}
}

func FuzzParseLinks(f *testing.F) {
	f.Add([]byte(`[{"ifname":"ens2","vfinfo_list":[{"vf":0,"vlan_list":[{}],"rate":{}}]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseLinks(text); err == nil {
			return
		}
	})
}

package nic

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/pcidriver"
)

// SRIOV is nic_sriov.
type SRIOV struct{}

var (
	_ providers.Resource = SRIOV{}
	_ providers.Preparer = SRIOV{}
	_ providers.Planner  = SRIOV{}
	_ providers.Claimer  = SRIOV{}
)

// maxVFs is what sriov_totalvfs can say at most: 16 bits (PCI Express Base Specification, SR-IOV Extended Capability).
const maxVFs = 65535

// Schema is constant.
func (SRIOV) Schema() *schema.Resource {
	num := &schema.Attribute{Type: cty.Number, Required: true, Cost: schema.Replace, Validate: schema.Whole(1, maxVFs),
		Description: "Number of virtual functions, from 1 to total_vfs. The kernel changes it only from 0, so another number takes all functions away, and what uses them leaves first."}
	return &schema.Resource{
		Type: "nic_sriov", Setting: true,
		Description: "Virtual functions of a NIC (SR-IOV), and what its physical function lets each of them do. Destroy puts back the number that was found, with what was set of them. What is set goes by the physical function's driver; what that does not support is an error that names it.",
		After:       []string{"host_package", "host_module", "host_kernel_args"},
		Example: `resource "nic_sriov" "p0" {
  pci     = "0000:01:00.0"
  num_vfs = 2

  vf "0" {
    mac    = "02:00:00:00:01:00"
    trust  = true
    driver = "vfio-pci"
  }
}`,
		Block: schema.Block{
			Attributes: map[string]*schema.Attribute{
				"pci":           {Type: cty.String, Required: true, Cost: schema.Replace, Canonical: canonicalPCI, Description: "PCI address of the physical function: 0000:01:00.0. Without a domain: 0000."},
				"num_vfs":       num,
				"total_vfs":     {Type: cty.Number, Computed: true, Description: "How many it can have (sriov_totalvfs)."},
				"vf_pci":        {Type: cty.List(cty.String), Computed: true, Description: "PCI addresses of the virtual functions, by number."},
				"vf_interfaces": {Type: cty.List(cty.String), Computed: true, Volatile: true, Description: "Interfaces of the virtual functions, by number; empty for one that no kernel driver has."},
			},
			Blocks: map[string]*schema.NestedBlock{"vf": {Nesting: schema.Map, Block: vfBlock()}},
		},
	}
}

func vfBlock() schema.Block {
	opt := func(t cty.Type, cost schema.Cost, what string) *schema.Attribute {
		return &schema.Attribute{Type: t, Optional: true, Cost: cost, Description: what}
	}
	b := schema.Block{
		Description: "What a virtual function may do; the label is its number, from 0. Unset arguments stay as the driver has them (ip-link(8), vf).",
		Attributes: map[string]*schema.Attribute{
			"mac":         opt(cty.String, schema.PortReset, "MAC address. A function that a kernel driver has is given to it anew, since it asks for its address only then."),
			"vlan":        opt(cty.Number, schema.Live, "VLAN that its frames are put into and taken out of, 1 to 4094; 0: none. It does not see the tag."),
			"qos":         opt(cty.Number, schema.Live, "Priority in that tag, 0 to 7 (IEEE 802.1Q PCP)."),
			"trust":       opt(cty.Bool, schema.Live, "Whether it may change its MAC address and be promiscuous. DPDK programs that bridge need it."),
			"spoofchk":    opt(cty.Bool, schema.Live, "Whether frames with a source address other than its own are dropped. Off where it forwards."),
			"link_state":  opt(cty.String, schema.Live, "Whether it sees its link as the port's (auto), always up (enable) or always down (disable)."),
			"min_tx_rate": opt(cty.Number, schema.Live, "Least transmit bandwidth in Mbit/s; 0: none is kept for it."),
			"max_tx_rate": opt(cty.Number, schema.Live, "Most transmit bandwidth in Mbit/s; 0: no limit. Some drivers take it only while the link is up."),
			"driver":      opt(cty.String, schema.PortReset, "vfio-pci (for DPDK and VMs), uio_pci_generic, igb_uio, \"kernel\", or the name of a kernel driver. Unset: what the kernel chooses. A nic_driver with an element of vf_pci does the same."),
		},
	}
	b.Attributes["mac"].Canonical = schema.MAC
	b.Attributes["vlan"].Validate = schema.Whole(0, 4094)
	b.Attributes["qos"].Validate = schema.Whole(0, 7)
	b.Attributes["link_state"].OneOf = []string{"auto", "enable", "disable"}
	b.Attributes["min_tx_rate"].Validate = schema.Whole(0, 1<<31-1)
	b.Attributes["max_tx_rate"].Validate = schema.Whole(0, 1<<31-1)
	b.Attributes["driver"].Validate = validDriver
	return b
}

// functions is a configuration of virtual functions.
type functions struct {
	pci string
	num int
	vf  map[int]cty.Value // blocks, by number; those with another label are left out
}

func decodeFunctions(v cty.Value) functions {
	f := functions{pci: decodePCI(v), num: int(attr.Number(v, "num_vfs", 0)), vf: map[int]cty.Value{}}
	if blocks := v.GetAttr("vf"); blocks.IsKnown() && !blocks.IsNull() {
		for label, block := range blocks.AsValueMap() {
			if n, ok := index(label); ok {
				f.vf[n] = block
			}
		}
	}
	return f
}

// index is the number that a label gives, in its only spelling.
func index(label string) (int, bool) {
	n, err := strconv.Atoi(label)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == label
}

// driver is the driver that a function is to have; "" when nothing is said.
func (f functions) driver(n int) string {
	if b, ok := f.vf[n]; ok {
		return attr.Text(b, "driver")
	}
	return ""
}

// Read tells the virtual functions as they are.
func (s SRIOV) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	b, err := busOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	v, err := s.current(ctx, b, req.Prior)
	return providers.ReadResult{Current: v}, err
}

// current is what there is, in the spelling of prior; null when the NIC is not there. None are a number too: what came with them, such as modules, may still be there.
func (s SRIOV) current(ctx context.Context, b *bus, prior cty.Value) (cty.Value, error) {
	f := decodeFunctions(prior)
	devices, err := b.look(ctx)
	if err != nil {
		return cty.NilVal, err
	}
	dev := devices[f.pci]
	if dev == nil {
		return cty.NullVal(s.Schema().Block.ImpliedType()), nil
	}
	out := prior.AsValueMap()
	out["num_vfs"], out["total_vfs"] = cty.NumberIntVal(int64(dev.vfs)), cty.NumberIntVal(int64(dev.total))
	pci, interfaces := []cty.Value{}, []cty.Value{}
	for _, addr := range dev.vfPCI {
		name := ""
		if vf := devices[addr]; vf != nil {
			name = vf.first()
		}
		pci, interfaces = append(pci, cty.StringVal(addr)), append(interfaces, cty.StringVal(name))
	}
	out["vf_pci"], out["vf_interfaces"] = list(pci), list(interfaces)
	if len(pci) == 0 || len(f.vf) == 0 {
		return cty.ObjectVal(out), nil
	}
	set, err := b.settings(ctx, dev)
	if err != nil {
		return cty.NilVal, err
	}
	blocks := prior.GetAttr("vf").AsValueMap()
	for n, block := range f.vf {
		var vf *device
		if n < len(dev.vfPCI) {
			vf = devices[dev.vfPCI[n]]
		}
		if n < len(set) {
			blocks[strconv.Itoa(n)] = set[n].in(block, vf)
		}
	}
	out["vf"] = cty.MapVal(blocks)
	return cty.ObjectVal(out), nil
}

func list(texts []cty.Value) cty.Value {
	if len(texts) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(texts)
}

// undoFunctions is what was found.
type undoFunctions struct {
	Num       int          `json:"num"`
	Autoprobe string       `json:"autoprobe,omitempty"`
	Settings  []vfSettings `json:"settings,omitempty"` // of those there were
	Drivers   []string     `json:"drivers,omitempty"`  // of those, too
	Loaded    []string     `json:"loaded,omitempty"`   // as undo's
}

func decodeUndoFunctions(raw json.RawMessage) (undoFunctions, error) {
	var u undoFunctions
	if len(raw) == 0 {
		return u, nil
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return u, fmt.Errorf("what was recorded of the virtual functions: %w", err)
	}
	return u, nil
}

// Prepare records how many there are, what is set of each and which driver it has.
func (s SRIOV) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	b, err := busOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	f := decodeFunctions(req.Planned)
	dev, err := b.device(ctx, f.pci)
	if err != nil {
		return nil, fmt.Errorf("%w on %s", err, req.Host.Name())
	}
	u, err := decodeUndoFunctions(req.Undo)
	if err != nil {
		return nil, err
	}
	if len(req.Undo) == 0 {
		u = undoFunctions{Num: dev.vfs, Autoprobe: dev.autoprobe}
		if dev.vfs > 0 {
			if u.Settings, err = b.settings(ctx, dev); err != nil {
				return nil, err
			}
		}
		for _, addr := range dev.vfPCI {
			driver := ""
			if vf := b.known[addr]; vf != nil {
				driver = vf.driver
			}
			u.Drivers = append(u.Drivers, driver)
		}
	}
	for n := range f.vf {
		for _, m := range modulesOf(f.driver(n)) {
			if (!b.modules[m] || b.loaded[m]) && !slices.Contains(u.Loaded, m) {
				u.Loaded = append(u.Loaded, m)
			}
		}
	}
	return json.Marshal(u)
}

// Claims are the number of the physical function's functions and their drivers, and that DPDK can use those.
func (SRIOV) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	f := decodeFunctions(planned)
	var c providers.Claims
	if f.pci == "" {
		return c, nil
	}
	c.Unique = append(c.Unique, providers.Unique{Scope: "virtual functions of the NIC", Value: f.pci, Path: cty.GetAttrPath("pci")})
	pci := planned.GetAttr("vf_pci")
	if !pci.IsKnown() || pci.IsNull() {
		return c, nil
	}
	facts, err := h.Facts(ctx)
	if err != nil {
		return c, err
	}
	for _, n := range slices.Sorted(maps.Keys(f.vf)) {
		driver := f.driver(n)
		if driver == "" || n >= pci.LengthInt() {
			continue
		}
		addr, at := pci.AsValueSlice()[n].AsString(), vfPath(n).GetAttr("driver")
		c.Unique = append(c.Unique, providers.Unique{Scope: "driver of the PCI device", Value: addr, Path: at})
		if pcidriver.ForDPDK(driver) {
			c.Provides = append(c.Provides, providers.Named{Kind: pcidriver.Bound, Name: addr, Path: at})
		}
		if driver == vfioDriver {
			c.Provides = append(c.Provides, providers.Named{Kind: onVFIO, Name: addr, Path: at})
			c.Needs = append(c.Needs, viable(facts, h.Name(), addr)...)
		}
	}
	return c, nil
}

func vfPath(n int) cty.Path {
	return cty.GetAttrPath("vf").Index(cty.StringVal(strconv.Itoa(n)))
}

package nic

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/pcidriver"
)

// Driver is nic_driver.
type Driver struct{}

var (
	_ providers.Resource = Driver{}
	_ providers.Preparer = Driver{}
	_ providers.Planner  = Driver{}
	_ providers.Claimer  = Driver{}
)

// Names of drivers.
const (
	kernelDriver = "kernel" // whichever the kernel would take itself
	vfioDriver   = "vfio-pci"
	uioGeneric   = "uio_pci_generic"
	igbUIO       = "igb_uio"
)

// userDrivers pass a device on to a program.
func userDrivers() []string { return []string{vfioDriver, uioGeneric, igbUIO} }

// pciAddress is domain:bus:device.function; a domain has four digits or more (a VMD's has five).
var pciAddress = regexp.MustCompile(`^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])$`)

func canonicalPCI(v cty.Value) (cty.Value, error) {
	m := pciAddress.FindStringSubmatch(strings.ToLower(v.AsString()))
	if m == nil {
		return v, fmt.Errorf("%q is not a PCI address such as 0000:01:00.0", v.AsString())
	}
	if m[1] == "" {
		m[1] = "0000"
	}
	return cty.StringVal(m[1] + ":" + m[2]), nil
}

func validDriver(v cty.Value) error {
	s := v.AsString()
	if s == "" || len(s) > 63 || s[0] == '-' || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return fmt.Errorf("%q is not the name of a driver", s)
	}
	return nil
}

// Schema is constant.
func (Driver) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "nic_driver", Setting: true,
		Description: "The driver that a NIC is bound to: vfio-pci (or another that passes it on) for DPDK, \"kernel\" for the kernel's own. Destroy binds it to what it had, and gives its interface back its addresses, MTU, routes and whether it was up. " +
			"What cannot work is refused before anything is unbound: no IOMMU, an IOMMU group that is not viable, NICs that DPDK uses together with their kernel driver (mlx5, mlx4), and the NIC that Plumb's own connection or the default route uses.",
		After: []string{"host_package", "host_module", "nic_sriov"},
		LostOn: []schema.Loss{
			{Type: "nic_sriov", Cost: schema.Replace, Release: true, Why: "another number of virtual functions takes them all away"},
		},
		Example: `resource "nic_driver" "p0" {
  pci    = "0000:01:00.0"
  driver = "vfio-pci"
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"pci": {Type: cty.String, Required: true, Cost: schema.Replace, Canonical: canonicalPCI, Description: "PCI address of the NIC: 0000:01:00.0. Without a domain: 0000."},
			"driver": {Type: cty.String, Required: true, Cost: schema.PortReset, Validate: validDriver,
				Description: "vfio-pci, uio_pci_generic, igb_uio, \"kernel\" (the one that the kernel chooses itself), or the name of a kernel driver."},
			"noiommu": {Type: cty.Bool, Optional: true, Default: cty.False, Cost: schema.PortReset,
				Description: "Use vfio's mode without an IOMMU where there is none. It is UNSAFE: the program that has the NIC can read and write all memory. Destroy switches it off again."},
			"persistent": {Type: cty.Bool, Optional: true, Default: cty.True,
				Description: "Whether a reboot leaves the NIC on this driver: by driverctl where it is installed, else by a udev rule."},
			"interface":   {Type: cty.String, Computed: true, Volatile: true, Description: "Name of the kernel's interface; empty while no kernel driver has the NIC."},
			"vendor":      {Type: cty.String, Computed: true, Description: "PCI id of the vendor, four hexadecimal digits."},
			"device":      {Type: cty.String, Computed: true, Description: "PCI id of the device, four hexadecimal digits."},
			"numa_node":   {Type: cty.Number, Computed: true, Description: "NUMA node of the slot; -1: not known."},
			"iommu_group": {Type: cty.Number, Computed: true, Description: "IOMMU group; -1: none."},
		}},
	}
}

// want is a configuration.
type want struct {
	pci, driver         string
	noiommu, persistent bool
}

func decode(v cty.Value) want {
	return want{pci: decodePCI(v), driver: attr.Text(v, "driver"), noiommu: attr.Truth(v, "noiommu", false), persistent: attr.Truth(v, "persistent", true)}
}

// decodePCI is the address in its only spelling; "" while it is not known.
func decodePCI(v cty.Value) string {
	if pci := v.GetAttr("pci"); pci.IsKnown() && !pci.IsNull() {
		if c, err := canonicalPCI(pci); err == nil {
			return c.AsString()
		}
	}
	return ""
}

// Read tells the driver as it is.
func (d Driver) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	b, err := busOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	v, err := d.current(ctx, b, req.Prior)
	return providers.ReadResult{Current: v}, err
}

// current is the NIC as it is, in the spelling of prior; null when it is not there.
func (d Driver) current(ctx context.Context, b *bus, prior cty.Value) (cty.Value, error) {
	w := decode(prior)
	devices, err := b.look(ctx)
	if err != nil {
		return cty.NilVal, err
	}
	dev := devices[w.pci]
	if dev == nil {
		return cty.NullVal(d.Schema().Block.ImpliedType()), nil
	}
	out := prior.AsValueMap()
	out["driver"] = cty.StringVal(dev.spelled(w.driver))
	kept := dev.kept == w.driver || w.driver == kernelDriver && dev.kept == "" || !slices.Contains(userDrivers(), w.driver) && dev.kept == ""
	if w.persistent && !kept || !w.persistent && dev.kept != "" && dev.kept == w.driver {
		out["persistent"] = cty.BoolVal(!w.persistent)
	}
	if w.noiommu && slices.Contains(userDrivers(), dev.driver) && !b.noiommu {
		out["noiommu"] = cty.False
	}
	out["interface"] = cty.StringVal(dev.first())
	out["vendor"], out["device"] = cty.StringVal(dev.vendor), cty.StringVal(dev.product)
	out["numa_node"], out["iommu_group"] = cty.NumberIntVal(int64(dev.node)), cty.NumberIntVal(int64(dev.group))
	return cty.ObjectVal(out), nil
}

// undo is what was found.
type undo struct {
	Driver    string   `json:"driver"`   // "" for none
	Override  string   `json:"override"` // driver_override
	Kept      string   `json:"kept"`     // by driverctl
	NoIOMMU   *bool    `json:"noiommu,omitempty"`
	Loaded    []string `json:"loaded,omitempty"` // modules that were not loaded before a Plumb did
	VFs       int      `json:"vfs,omitempty"`
	Interface *netdev  `json:"interface,omitempty"`
}

func decodeUndo(raw json.RawMessage) (undo, error) {
	var u undo
	if len(raw) == 0 {
		return u, nil
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return u, fmt.Errorf("what was recorded of the NIC: %w", err)
	}
	return u, nil
}

// Prepare records the driver and all that the interface loses with it. On an update what is recorded stays, and modules and modes that were not needed before are added.
func (d Driver) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	b, err := busOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	b.drop()
	devices, err := b.look(ctx)
	if err != nil {
		return nil, err
	}
	w := decode(req.Planned)
	dev := devices[w.pci]
	if dev == nil {
		return nil, fmt.Errorf("there is no NIC %s on %s", w.pci, req.Host.Name())
	}
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return nil, err
	}
	if len(req.Undo) == 0 {
		u = undo{Driver: dev.driver, Override: dev.override, Kept: dev.driverctl, VFs: dev.vfs}
		if name := dev.first(); name != "" {
			if u.Interface, err = readNetdev(ctx, req.Host.Conn(), name); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range modulesOf(w.driver) {
		if (!b.modules[m] || b.loaded[m]) && !slices.Contains(u.Loaded, m) {
			u.Loaded = append(u.Loaded, m)
		}
	}
	if w.noiommu && u.NoIOMMU == nil {
		was := b.noiommu
		u.NoIOMMU = &was
	}
	return json.Marshal(u)
}

// Apply binds the NIC, or puts back what was found.
func (d Driver) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	b, err := busOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	// What is begun is finished, whatever becomes of the context: a NIC without a driver helps nobody.
	ctx = context.WithoutCancel(ctx)
	b.drop()
	defer b.drop()
	if req.Planned.IsNull() {
		err := b.restore(ctx, decode(req.Prior), u, req.Log)
		if err != nil {
			return providers.ApplyResult{}, err
		}
		return providers.ApplyResult{New: req.Planned}, nil
	}
	w := decode(req.Planned)
	if err := d.late(ctx, b, w); err != nil {
		return providers.ApplyResult{}, err
	}
	if err := b.bind(ctx, w, u, req.Log); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("bind %s to %s: %w", w.pci, w.driver, err)
	}
	b.drop()
	v, err := d.current(ctx, b, withoutUnknown(req.Planned))
	if err == nil && v.IsNull() {
		err = fmt.Errorf("NIC %s has gone", w.pci)
	}
	return providers.ApplyResult{New: v}, err
}

// late refuses what Plan could not know of: a device that was not there then, such as a virtual function that has just been made.
func (Driver) late(ctx context.Context, b *bus, w want) error {
	facts, err := b.host.Facts(ctx)
	if err != nil || facts.NIC(w.pci) != nil || !slices.Contains(userDrivers(), w.driver) {
		return err
	}
	dev, err := b.device(ctx, w.pci)
	if err != nil {
		return fmt.Errorf("%w on %s", err, b.host.Name())
	}
	if _, why := refusal(facts, b.host.Name(), w, dev.pf != ""); why != "" {
		return fmt.Errorf("bind %s to %s: %s", w.pci, w.driver, why)
	}
	return nil
}

// withoutUnknown makes computed attributes null: they are filled in by what is read.
func withoutUnknown(v cty.Value) cty.Value {
	out := v.AsValueMap()
	for name, e := range out {
		if !e.IsKnown() {
			out[name] = cty.NullVal(e.Type())
		}
	}
	return cty.ObjectVal(out)
}

// Claims is the device, and that it is for DPDK to use.
func (Driver) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	w := decode(planned)
	if w.pci == "" {
		return providers.Claims{}, nil
	}
	at := cty.GetAttrPath("pci")
	c := providers.Claims{Unique: []providers.Unique{{Scope: "driver of the PCI device", Value: w.pci, Path: at}}}
	if pcidriver.ForDPDK(w.driver) {
		c.Provides = append(c.Provides, providers.Named{Kind: pcidriver.Bound, Name: w.pci, Path: at})
	}
	if w.driver != vfioDriver {
		return c, nil
	}
	c.Provides = append(c.Provides, providers.Named{Kind: onVFIO, Name: w.pci, Path: at})
	facts, err := h.Facts(ctx)
	if err != nil {
		return c, err
	}
	c.Needs = append(c.Needs, viable(facts, h.Name(), w.pci)...)
	return c, nil
}

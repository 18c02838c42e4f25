package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// IRQAffinity is host_irq_affinity: which CPUs serve interrupts.
type IRQAffinity struct{}

var (
	_ providers.Resource = IRQAffinity{}
	_ providers.Preparer = IRQAffinity{}
	_ providers.Planner  = IRQAffinity{}
	_ providers.Claimer  = IRQAffinity{}
)

const (
	irqDir     = "/proc/irq"
	irqDefault = "/proc/irq/default_smp_affinity"
)

// Schema is constant.
func (IRQAffinity) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "host_irq_affinity",
		Description: "Which CPUs serve interrupts (Linux, Documentation/core-api/irq/irq-affinity.rst): those of a device, those of a list, or those that are to come. " +
			"Each interrupt gets back the list that it had. irqbalance moves them again: stop it with host_service.",
		Example: `resource "host_irq_affinity" "others" {
  default = true
  cpus    = "0"
}`,
		Setting: true,
		After:   []string{"host_service", "host_module", "nic_driver", "nic_sriov", "nic_link"},
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"device": optional(cty.String, schema.Replace, validDevice, "PCI address or network interface, whose interrupts (MSI and MSI-X vectors, else the line) are meant. One of device, irqs and default is given."),
			"irqs": optional(cty.List(cty.Number), schema.Replace, each(schema.Whole(0, 1<<20)),
				"Numbers as in /proc/interrupts."),
			"default": optional(cty.Bool, schema.Replace, onlyTrue, "True: interrupts that are requested from now on (/proc/irq/default_smp_affinity)."),
			"cpus": {Type: cty.String, Required: true, Canonical: someCPUs,
				Description: "CPU list: 0,14."},
		}},
	}
}

func onlyTrue(v cty.Value) error {
	if v.False() {
		return errors.New("false says nothing: leave it out")
	}
	return nil
}

func someCPUs(v cty.Value) (cty.Value, error) {
	s, err := cpuset.Parse(v.AsString())
	if err == nil && s.IsEmpty() {
		err = errors.New("no CPU is named")
	}
	return cty.StringVal(s.String()), err
}

func validDevice(v cty.Value) error {
	s := v.AsString()
	pci, err := schema.PCI(v)
	if err == nil && pci.RawEquals(v) || len(s) > 0 && len(s) < 16 && s != "." && s != ".." && regexp.MustCompile(`^[A-Za-z0-9_@.][A-Za-z0-9_@.+-]*$`).MatchString(s) { // IFNAMSIZ
		return nil
	}
	return fmt.Errorf("%q is neither a PCI address such as 0000:01:00.0, in small letters, nor an interface", s)
}

// interrupts is what a host has of them.
type interrupts struct {
	lists   values           // smp_affinity_list by file, and the default mask
	devices map[string][]int // by PCI address
	pci     map[string]string
}

type interruptsKey struct{}

func interruptsOf(ctx context.Context, h providers.Host) (*cache[*interrupts], *interrupts, error) {
	c, err := cacheOf[*interrupts](ctx, h, interruptsKey{})
	if err != nil {
		return nil, nil, err
	}
	i, err := c.get(ctx, func(ctx context.Context) (*interrupts, error) {
		v, err := readValues(ctx, h, irqDir+"/[0-9]*/smp_affinity_list", irqDefault, "/sys/bus/pci/devices/*/msi_irqs/*", "/sys/bus/pci/devices/*/irq",
			"/sys/bus/pci/devices/*/net/*/uevent", "/sys/bus/pci/devices/*/virtio*/net/*/uevent")
		if err != nil {
			return nil, fmt.Errorf("read interrupts: %w", err)
		}
		return parseInterrupts(v), nil
	})
	return c, i, err
}

func parseInterrupts(v values) *interrupts {
	out := &interrupts{lists: values{}, devices: map[string][]int{}, pci: map[string]string{}}
	lines := map[string]int{}
	for name, text := range v {
		parts := strings.Split(name, "/")
		if strings.HasPrefix(name, irqDir) {
			out.lists[name] = text
			continue
		}
		if len(parts) < 7 {
			continue
		}
		address := parts[5]
		switch {
		case parts[6] == "msi_irqs" && len(parts) == 8:
			if n, err := strconv.Atoi(parts[7]); err == nil {
				out.devices[address] = append(out.devices[address], n)
			}
		case parts[6] == "irq":
			if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
				lines[address] = n
			}
		case path.Base(name) == "uevent":
			out.pci[parts[len(parts)-2]] = address
		}
	}
	for address, n := range lines {
		if len(out.devices[address]) == 0 {
			out.devices[address] = []int{n}
		}
	}
	for _, list := range out.devices {
		slices.Sort(list)
	}
	return out
}

// affinity is what an instance wants.
type affinity struct {
	cpus   cpuset.Set
	device string
	irqs   []int
	all    bool // the default
}

func newAffinity(v cty.Value) (affinity, error) {
	a := affinity{device: attr.Text(v, "device"), all: attr.Truth(v, "default", false)}
	var err error
	if a.cpus, err = cpuset.Parse(attr.Text(v, "cpus")); err != nil {
		return a, err
	}
	if l := v.GetAttr("irqs"); l.IsKnown() && !l.IsNull() {
		for it := l.ElementIterator(); it.Next(); {
			if _, e := it.Element(); e.IsKnown() && !e.IsNull() {
				n, _ := e.AsBigFloat().Int64()
				a.irqs = append(a.irqs, int(n))
			}
		}
	}
	return a, nil
}

// files are the files that the instance manages, with what they should hold.
func (a affinity) files(i *interrupts) values {
	out := values{}
	irqs := a.irqs
	if a.device != "" {
		address := a.device
		if p, ok := i.pci[address]; ok {
			address = p
		}
		irqs = i.devices[address]
	}
	for _, n := range irqs {
		// A vector that nobody has requested has no folder.
		if f := fmt.Sprintf("%s/%d/smp_affinity_list", irqDir, n); i.lists[f] != "" {
			out[f] = a.cpus.String()
		}
	}
	if a.all {
		out[irqDefault] = mask(a.cpus)
	}
	return out
}

// mask is a set as the kernel prints masks: groups of 32 bits.
func mask(s cpuset.Set) string {
	var words []uint32
	for id := range s.All() {
		for len(words) <= id/32 {
			words = append(words, 0)
		}
		words[id/32] |= 1 << (id % 32)
	}
	var parts []string
	for _, w := range slices.Backward(words) {
		parts = append(parts, fmt.Sprintf("%08x", w))
	}
	return strings.Join(parts, ",")
}

// sameCPUs compares two values of a file of affinity.
func sameCPUs(file, a, b string) bool { return a == b || cpuList(file, a) == cpuList(file, b) }

// Read reports the CPUs, and the first other list there is where an interrupt is elsewhere.
func (IRQAffinity) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	_, i, err := interruptsOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	a, err := newAffinity(req.Prior)
	if err != nil {
		return providers.ReadResult{}, err
	}
	want := a.files(i)
	for _, f := range sortedFiles(want) {
		if !sameCPUs(f, i.lists[f], want[f]) {
			return providers.ReadResult{Current: with(req.Prior, map[string]cty.Value{"cpus": cty.StringVal(cpuList(f, i.lists[f]))})}, nil
		}
	}
	return providers.ReadResult{Current: req.Prior}, nil
}

// cpuList is what a file says, as a list.
func cpuList(file, text string) string {
	parse := cpuset.Parse
	if file == irqDefault {
		parse = cpuset.ParseMask
	}
	s, err := parse(text)
	if err != nil {
		return text
	}
	return s.String()
}

// Plan finds a device or interrupts that are not there, CPUs that are not online, and warns of irqbalance.
func (IRQAffinity) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil {
		return res, err
	}
	given := 0
	for _, n := range []string{"device", "irqs", "default"} {
		if !unset(req.Proposed.GetAttr(n)) {
			given++
		}
	}
	if given != 1 {
		res.Problems = append(res.Problems, problem("", "Interrupts are not clear", "Exactly one of device, irqs and default says which interrupts are meant; there are %d.", given))
		return res, nil
	}
	if f == nil || unchanged(req) || !req.Proposed.IsWhollyKnown() {
		return res, nil
	}
	a, err := newAffinity(req.Proposed)
	if err != nil {
		return res, err
	}
	_, i, err := interruptsOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	res.Problems = append(res.Problems, a.problems(i, f, req.Host.Name())...)
	return res, nil
}

func (a affinity) problems(i *interrupts, f *providers.Facts, host string) []providers.Problem {
	var out []providers.Problem
	online := map[int]bool{}
	for _, c := range f.CPUs {
		online[c.ID] = c.Online
	}
	for id := range a.cpus.All() {
		if !online[id] {
			out = append(out, problem("cpus", "CPU is not online", "%s has no CPU %d that is online.", host, id))
		}
	}
	for _, n := range a.irqs {
		if i.lists[fmt.Sprintf("%s/%d/smp_affinity_list", irqDir, n)] == "" {
			out = append(out, problem("irqs", "No such interrupt", "%s has no interrupt %d: see /proc/interrupts. Numbers change when drivers are loaded: name a device.", host, n))
		}
	}
	if a.device != "" && len(a.files(i)) == 0 {
		p := problem("device", "Device has no interrupts", "%s of %s is not there, or its driver has not requested interrupts: one that belongs to vfio-pci and DPDK has none, and an interface that is down may have few. "+
			"If another resource of this configuration changes that, all is well.", a.device, host)
		p.Warning = true
		out = append(out, p)
	}
	if f.Services["irqbalance"] == "active" || f.Services["irqbalance.service"] == "active" {
		p := providers.Problem{Warning: true, Host: host, Summary: "irqbalance is running",
			Detail: fmt.Sprintf("irqbalance of %s moves interrupts every ten seconds, and will move those of host_irq_affinity, too. Stop it: resource \"host_service\" \"irqbalance\" { name = \"irqbalance\", state = \"stopped\", enabled = false }", host)}
		out = append(out, p)
	}
	return out
}

// Claims says that the interrupts are one instance's.
func (IRQAffinity) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	a, err := newAffinity(planned)
	if err != nil {
		return providers.Claims{}, err
	}
	var c providers.Claims
	add := func(value, attribute string) {
		c.Unique = append(c.Unique, providers.Unique{Scope: "affinity of interrupts", Value: value, Path: cty.GetAttrPath(attribute)})
	}
	if a.device != "" {
		add(a.device, "device")
	}
	if a.all {
		add("default", "default")
	}
	for _, n := range a.irqs {
		add(strconv.Itoa(n), "irqs")
	}
	return c, nil
}

// Prepare records the lists.
func (IRQAffinity) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := recorded[undoValues](req.Undo)
	if err != nil {
		return nil, err
	}
	a, err := newAffinity(req.Planned)
	if err != nil {
		return nil, err
	}
	c, _, err := interruptsOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	c.drop()
	_, i, err := interruptsOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	u.note(i.lists, sortedFiles(a.files(i)))
	return json.Marshal(u)
}

// Apply moves the interrupts, or puts each back.
func (IRQAffinity) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := recorded[undoValues](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c, _, err := interruptsOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c.drop()
	defer c.drop()
	_, i, err := interruptsOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	want := values{}
	if !req.Planned.IsNull() {
		a, err := newAffinity(req.Planned)
		if err != nil {
			return providers.ApplyResult{}, err
		}
		want = a.files(i)
	}
	target := u.target(want)
	err = setValues(ctx, req.Host, sortedFiles(target), i.lists, target, sameCPUs)
	var refused *refusedError
	if errors.As(err, &refused) && ioError(err) {
		err = fmt.Errorf("interrupt %s is managed by the kernel, which spreads the queues of its device over the CPUs by itself and lets nobody move them (it stays on %s). "+
			"Name the others in irqs, or keep such interrupts off isolated CPUs with isolcpus=managed_irq: %w", path.Base(path.Dir(refused.file)), refused.have, refused.err)
	}
	return providers.ApplyResult{New: req.Planned}, err
}

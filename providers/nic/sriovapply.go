package nic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// Apply makes the virtual functions and sets them up, or puts back what was found.
func (s SRIOV) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	b, err := busOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := decodeUndoFunctions(req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	ctx = context.WithoutCancel(ctx) // as nic_driver's: what is begun is finished
	b.binding.Lock()
	defer b.binding.Unlock()
	b.drop()
	defer b.drop()
	if req.Planned.IsNull() {
		pci := decodeFunctions(req.Prior).pci
		if err := b.restoreFunctions(ctx, req.Prior, u); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("virtual functions of %s: %w", pci, err)
		}
		return providers.ApplyResult{New: req.Planned}, nil
	}
	f := decodeFunctions(req.Planned)
	if err := b.makeFunctions(ctx, f, req.Prior, u); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("virtual functions of %s: %w", f.pci, err)
	}
	b.drop()
	v, err := s.current(ctx, b, withoutUnknown(req.Planned))
	if err == nil && v.IsNull() {
		err = fmt.Errorf("virtual functions of %s have gone", f.pci)
	}
	if err != nil {
		return providers.ApplyResult{}, err
	}
	return providers.ApplyResult{New: v}, s.came(f, v, b.known[f.pci].driver)
}

// came compares what is set with what there is: drivers take some things without a word.
func (SRIOV) came(f functions, now cty.Value, driver string) error {
	var errs []error
	have := decodeFunctions(now)
	block := vfBlock()
	for _, n := range slices.Sorted(maps.Keys(f.vf)) {
		for _, name := range slices.Sorted(maps.Keys(block.Attributes)) {
			want, got := f.vf[n].GetAttr(name), have.vf[n].GetAttr(name)
			if want.IsNull() || same(block.Attributes[name], want, got) {
				continue
			}
			errs = append(errs, fmt.Errorf("virtual function %d of %s should have %s = %s, and has %s after it was set: the driver %s made that of it", n, f.pci, name, shown(want), shown(got), driver))
		}
	}
	return errors.Join(errs...)
}

func same(a *schema.Attribute, want, got cty.Value) bool {
	if a.Canonical != nil && !got.IsNull() {
		if c, err := a.Canonical(want); err == nil {
			want = c
		}
		if c, err := a.Canonical(got); err == nil {
			got = c
		}
	}
	return want.RawEquals(got)
}

func shown(v cty.Value) string {
	switch {
	case v.IsNull():
		return "nothing"
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case v.Type() == cty.Bool:
		return strconv.FormatBool(v.True())
	}
	return strconv.Quote(v.AsString())
}

// makeFunctions brings the virtual functions to what is wanted.
func (b *bus) makeFunctions(ctx context.Context, f functions, prior cty.Value, u undoFunctions) error {
	dev, err := b.device(ctx, f.pci)
	if err != nil {
		return err
	}
	before := map[int]cty.Value{}
	if !prior.IsNull() {
		before = decodeFunctions(prior).vf
	}
	passed := false // some are for user space
	for n := range f.vf {
		if driver := f.driver(n); slices.Contains(userDrivers(), driver) {
			passed = true
			if err := b.load(ctx, driver); err != nil {
				return err
			}
		}
	}
	remade := dev.vfs != f.num
	if remade {
		if dev.driver == "" || slices.Contains(userDrivers(), dev.driver) {
			return fmt.Errorf("it has %s, and only the kernel's own driver makes virtual functions: bind it with nic_driver (driver = \"kernel\") first", orDriver(dev.driver))
		}
		// Functions for user space are not given to a kernel driver first, which would take them for interfaces.
		if dev, err = b.setNumber(ctx, dev, f.num, passed && dev.autoprobe == "1"); err != nil {
			return err
		}
	}
	if err := b.setUp(ctx, dev, f, before, u, remade); err != nil {
		return err
	}
	return b.driversOf(ctx, dev, f, before, remade)
}

func orDriver(name string) string {
	if name == "" {
		return "no driver"
	}
	return "the driver " + name
}

// setNumber makes another number of virtual functions. apart: without drivers of their own.
func (b *bus) setNumber(ctx context.Context, dev *device, num int, apart bool) (*device, error) {
	dir := pciDir + "/" + dev.pci
	known := maps.Clone(b.modules)
	if dev.vfs != 0 {
		if err := b.notHeld(ctx, dev); err != nil {
			return nil, err
		}
		if err := b.write(ctx, dir+"/sriov_numvfs", "0"); err != nil {
			return nil, fmt.Errorf("take the %d there are away: %w", dev.vfs, err)
		}
	}
	if num == 0 {
		return b.device(ctx, dev.pci)
	}
	if apart {
		if err := b.write(ctx, dir+"/sriov_drivers_autoprobe", "0"); err != nil {
			return nil, err
		}
	}
	err := b.write(ctx, dir+"/sriov_numvfs", strconv.Itoa(num))
	if err != nil {
		err = fmt.Errorf("make %d: %w. The kernel log (dmesg) says why its driver %s does not; often SR-IOV is off in the BIOS, or the bus has no room for them", num, err, dev.driver)
	}
	if apart {
		err = errors.Join(err, b.write(ctx, dir+"/sriov_drivers_autoprobe", "1"))
	}
	if err != nil {
		return nil, err
	}
	if !apart {
		_, _ = b.host.Conn().Run(ctx, providers.Cmd{Args: []string{"udevadm", "settle", "--timeout=20"}}) // their interfaces' names
	}
	if err := b.wait(ctx, dev.pci, func(d *device) bool { return len(d.vfPCI) == num && d.vfs == num }, fmt.Sprintf("%d virtual functions", num)); err != nil {
		return nil, err
	}
	dev = b.known[dev.pci]
	return dev, b.noteModules(ctx, dev, known)
}

// noteScript notes the modules that the kernel's alias of a device means, as loadScript does, but for those that are named: they were loaded before. A kernel without such a module has it built in, or has none.
const noteScript = `alias=$1; shift
for m in $(modprobe -R -- "$alias" 2>/dev/null); do
	m=$(printf %s "$m" | tr - _)
	for was in "$@"; do [ "$was" = "$m" ] && continue 2; done
	mkdir -p -- ` + loadedDir + ` && : >"` + loadedDir + `/$m" && echo "$m"
done
:`

// noteModules notes the modules that virtual functions bring: udev loads their driver, in its own time and also when none of them is to have it, and the kernel keeps it.
func (b *bus) noteModules(ctx context.Context, pf *device, before map[string]bool) error {
	vf := b.known[pf.vfPCI[0]]
	if vf == nil || vf.alias == "" {
		return nil
	}
	_, err := b.host.Conn().Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", noteScript, "plumb-nic-note", vf.alias}, slices.Sorted(maps.Keys(before))...)})
	return err
}

// brought are the modules that were noted because virtual functions brought them. One that other functions still need cannot be unloaded, and keeps its note for them.
func (b *bus) brought() []string {
	var out []string
	for _, m := range slices.Sorted(maps.Keys(b.loaded)) {
		if !slices.ContainsFunc(userDrivers(), func(driver string) bool { return slices.Contains(modulesOf(driver), m) }) {
			out = append(out, m)
		}
	}
	return out
}

// heldScript tells which processes have IOMMU groups open: a line with group, process and its name each.
const heldScript = `for g in "$@"; do
	for f in $(find /proc/[0-9]*/fd -maxdepth 1 -lname "/dev/vfio/$g" 2>/dev/null); do
		pid=${f#/proc/}; pid=${pid%%/*}
		echo "$g $pid $(cat "/proc/$pid/comm" 2>/dev/null)"
	done
done
:`

// notHeld is an error when a process has one of a NIC's virtual functions by vfio: the kernel then waits for that process to let go of it, without end.
func (b *bus) notHeld(ctx context.Context, pf *device) error {
	groups := map[string]string{}
	for _, addr := range pf.vfPCI {
		if vf := b.known[addr]; vf != nil && vf.driver == vfioDriver && vf.group >= 0 {
			groups[strconv.Itoa(vf.group)], groups["noiommu-"+strconv.Itoa(vf.group)] = addr, addr
		}
	}
	if len(groups) == 0 {
		return nil
	}
	res, err := b.host.Conn().Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", heldScript, "plumb-nic-held"}, slices.Sorted(maps.Keys(groups))...)})
	if err != nil {
		return fmt.Errorf("find out who uses virtual functions: %w", err)
	}
	for line := range strings.Lines(string(res.Stdout)) {
		if w := strings.Fields(line); len(w) >= 2 {
			return fmt.Errorf("%s is in use by process %s (%s): the kernel would wait for it to end. End it first", groups[w[0]], w[1], strings.Join(w[2:], " "))
		}
	}
	return nil
}

// setUp sets what the physical function allows each of its virtual ones.
func (b *bus) setUp(ctx context.Context, dev *device, f functions, before map[int]cty.Value, u undoFunctions, remade bool) error {
	concerned := slices.Sorted(maps.Keys(f.vf))
	for n := range before {
		if _, ok := f.vf[n]; !ok && !remade && n < dev.vfs {
			concerned = append(concerned, n)
		}
	}
	if len(concerned) == 0 {
		return nil
	}
	now, err := b.settings(ctx, dev)
	if err != nil {
		return err
	}
	var lines []vfLine
	for _, n := range concerned {
		found := fresh()
		if n < len(u.Settings) && u.Num == f.num {
			found = u.Settings[n]
		}
		if n < len(now) {
			lines = append(lines, aimVF(now[n], found, f.vf[n], before[n]).lines(dev.first(), n, now[n])...)
		}
	}
	return b.batch(ctx, dev, lines)
}

// batch has ip do lines, and says which argument it stopped at.
func (b *bus) batch(ctx context.Context, dev *device, lines []vfLine) error {
	if len(lines) == 0 {
		return nil
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.line + "\n")
	}
	b.links = nil
	_, err := b.host.Conn().Run(ctx, providers.Cmd{Args: []string{"ip", "-batch", "-"}, Stdin: []byte(text.String())})
	var exit *providers.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	said := strings.TrimSpace(string(exit.Stderr))
	_, at, _ := strings.Cut(said, "Command failed -:")
	n, parseErr := strconv.Atoi(strings.TrimSpace(at))
	if parseErr != nil || n < 1 || n > len(lines) {
		return err
	}
	why, _, _ := strings.Cut(said, "\n")
	return fmt.Errorf("%s: the driver %s does not take %q: %s. Not every driver supports it, and some only while the link is up", lines[n-1].argument, dev.driver, strings.TrimPrefix(lines[n-1].line, "link set dev "), strings.TrimPrefix(why, "RTNETLINK answers: "))
}

// driversOf gives the virtual functions to the drivers that they are to have.
func (b *bus) driversOf(ctx context.Context, dev *device, f functions, before map[int]cty.Value, remade bool) error {
	for n, addr := range dev.vfPCI {
		vf := b.known[addr]
		if vf == nil {
			return fmt.Errorf("%s is not on the bus", addr)
		}
		want := f.driver(n)
		had := ""
		if blk, ok := before[n]; ok {
			had = decodeDriver(blk)
		}
		var err error
		switch {
		case slices.Contains(userDrivers(), want):
			if vf.driver != want {
				err = b.move(ctx, vf, want)
			}
		case want != "" || had != "":
			if want == kernelDriver {
				want = ""
			}
			err = b.toKernel(ctx, vf, want, undo{}, func(string) {})
		case vf.driver == "" && remade && dev.autoprobe == "1": // made apart, for the sake of others
			err = b.write(ctx, probeFile, addr)
		}
		if err == nil && !remade && macChanged(f.vf[n], before[n]) {
			err = b.rebind(ctx, addr)
		}
		if err != nil {
			return fmt.Errorf("function %d (%s): %w", n, addr, err)
		}
	}
	return nil
}

func decodeDriver(block cty.Value) string {
	if d := block.GetAttr("driver"); d.IsKnown() && !d.IsNull() {
		return d.AsString()
	}
	return ""
}

func macChanged(now, before cty.Value) bool {
	mac := func(b cty.Value) string {
		if b == cty.NilVal || b.GetAttr("mac").IsNull() {
			return ""
		}
		return strings.ToLower(b.GetAttr("mac").AsString())
	}
	return mac(now) != "" && mac(now) != mac(before)
}

// rebind takes a function from its kernel driver and gives it back, so that its interface has the address that it was given.
func (b *bus) rebind(ctx context.Context, addr string) error {
	vf, err := b.device(ctx, addr)
	if err != nil || vf.driver == "" || slices.Contains(userDrivers(), vf.driver) {
		return err
	}
	was := vf.driver
	if err := b.write(ctx, path.Join(driverDir, was, "unbind"), addr); err != nil {
		return fmt.Errorf("take it from %s: %w", was, err)
	}
	if err := b.write(ctx, probeFile, addr); err != nil {
		return fmt.Errorf("have it probed: %w", err)
	}
	return b.wait(ctx, addr, func(d *device) bool { return d.driver == was }, orDriver(was))
}

// restoreFunctions puts back the number that was found, with settings and drivers.
func (b *bus) restoreFunctions(ctx context.Context, prior cty.Value, u undoFunctions) error {
	devices, err := b.look(ctx)
	if err != nil {
		return err
	}
	f := decodeFunctions(prior)
	dev := devices[f.pci]
	if dev == nil {
		return nil // who took the NIC out took them with it
	}
	unload := append(slices.Clone(u.Loaded), b.brought()...)
	remade := dev.vfs != u.Num
	if remade {
		if dev, err = b.setNumber(ctx, dev, u.Num, false); err != nil {
			return err
		}
	}
	if u.Autoprobe != "" && dev.autoprobe != u.Autoprobe {
		if err := b.write(ctx, pciDir+"/"+dev.pci+"/sriov_drivers_autoprobe", u.Autoprobe); err != nil {
			return err
		}
	}
	if u.Num > 0 {
		if err := b.asFound(ctx, dev, u); err != nil {
			return err
		}
	}
	if len(unload) == 0 {
		return nil
	}
	_, err = b.host.Conn().Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", unloadScript, "plumb-nic-unload"}, unload...)})
	return err
}

// asFound gives functions that were there before what they had.
func (b *bus) asFound(ctx context.Context, dev *device, u undoFunctions) error {
	now, err := b.settings(ctx, dev)
	if err != nil {
		return err
	}
	var lines []vfLine
	for n := range min(len(now), len(u.Settings)) {
		lines = append(lines, u.Settings[n].lines(dev.first(), n, now[n])...)
	}
	if err := b.batch(ctx, dev, lines); err != nil {
		return err
	}
	for n, addr := range dev.vfPCI {
		vf := b.known[addr]
		if n >= len(u.Drivers) || vf == nil || vf.driver == u.Drivers[n] {
			continue
		}
		switch want := u.Drivers[n]; {
		case want == "":
			err = b.write(ctx, path.Join(driverDir, vf.driver, "unbind"), addr)
		case slices.Contains(userDrivers(), want):
			if err = b.load(ctx, want); err == nil {
				err = b.move(ctx, vf, want)
			}
		default:
			err = b.toKernel(ctx, vf, "", undo{Driver: want}, func(string) {})
		}
		if err != nil {
			return fmt.Errorf("function %d (%s): %w", n, addr, err)
		}
	}
	return nil
}

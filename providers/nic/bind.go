package nic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"plumb/providers"
	"plumb/providers/internal/pause"
)

// Limits of waiting.
const (
	bindLimit   = 30 * time.Second // for a driver to have a device
	renameLimit = 30 * time.Second // for udev to have given an interface its name
)

// bind gives a device to a driver, keeps that over a reboot or not, and waits until it is so.
func (b *bus) bind(ctx context.Context, w want, u undo, log func(string)) error {
	b.binding.Lock()
	defer b.binding.Unlock()
	dev, err := b.device(ctx, w.pci)
	if err != nil {
		return err
	}
	if !slices.Contains(userDrivers(), w.driver) {
		driver := w.driver
		if driver == kernelDriver {
			driver = ""
		}
		return b.toKernel(ctx, dev, driver, u, log)
	}
	if err := b.load(ctx, w.driver); err != nil {
		return err
	}
	if w.noiommu && !b.noiommu {
		if err := b.write(ctx, unsafeFile, "Y"); err != nil {
			return err
		}
	}
	if dev.driver != w.driver || dev.override != w.driver {
		if err := b.move(ctx, dev, w.driver); err != nil {
			return errors.Join(err, b.rollBack(ctx, dev))
		}
	}
	return b.keep(ctx, dev, w)
}

// loadScript loads the first module, and notes which of all the named ones that has brought.
const loadScript = `driver=$1; shift
for m in "$@"; do [ -d "/sys/module/$m" ] || new="$new $m"; done
modprobe -- "$driver" || exit
mkdir -p -- ` + loadedDir + `
for m in $new; do : >"` + loadedDir + `/$m"; done`

// load loads a driver's module.
func (b *bus) load(ctx context.Context, driver string) error {
	if b.modules[strings.ReplaceAll(driver, "-", "_")] {
		return nil
	}
	_, err := b.host.Conn().Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", loadScript, "plumb-nic-load", driver}, modulesOf(driver)...)})
	if err != nil {
		return fmt.Errorf("load module %s: %w", driver, err)
	}
	return nil
}

// unloadScript unloads modules. One that something else uses stays, with its note, until that has gone.
const unloadScript = `for m in "$@"; do
	if [ ! -d "/sys/module/$m" ] || rmmod -- "$m" 2>/dev/null; then rm -f -- "` + loadedDir + `/$m"; fi
done
rmdir -- ` + loadedDir + ` 2>/dev/null
:`

// move takes a device from its driver and gives it to another: driver_override tells the kernel which driver matches, and a probe lets it try.
func (b *bus) move(ctx context.Context, dev *device, driver string) error {
	dir := pciDir + "/" + dev.pci
	if err := b.write(ctx, dir+"/driver_override", driver+"\n"); err != nil {
		return err
	}
	if dev.driver != "" && dev.driver != driver {
		if err := b.write(ctx, driverDir+"/"+dev.driver+"/unbind", dev.pci); err != nil {
			return fmt.Errorf("take it from %s: %w", dev.driver, err)
		}
	}
	if err := b.write(ctx, probeFile, dev.pci); err != nil {
		return fmt.Errorf("have it probed: %w", err)
	}
	return b.wait(ctx, dev.pci, func(d *device) bool { return d.driver == driver }, "driver "+driver)
}

// rollBack gives a device back to the driver that it had before a failed move.
func (b *bus) rollBack(ctx context.Context, was *device) error {
	now, err := b.device(ctx, was.pci)
	if err != nil || now.driver == was.driver && now.override == was.override {
		return err
	}
	if err := b.write(ctx, pciDir+"/"+was.pci+"/driver_override", was.override+"\n"); err != nil {
		return err
	}
	if was.driver == "" || now.driver == was.driver {
		return nil
	}
	if now.driver != "" {
		if err := b.write(ctx, driverDir+"/"+now.driver+"/unbind", was.pci); err != nil {
			return err
		}
	}
	return b.write(ctx, driverDir+"/"+was.driver+"/bind", was.pci)
}

// keep lets a reboot leave the device on its driver, or not.
func (b *bus) keep(ctx context.Context, dev *device, w want) error {
	if !w.persistent {
		return b.forget(ctx, dev)
	}
	if b.control {
		if dev.driverctl == w.driver {
			return nil
		}
		// What `driverctl set-override` keeps, without what else it does: it tells the driver the device's id (new_id), so that every later device of that id goes there too.
		return b.host.Conn().WriteFile(ctx, controlDir+"/"+dev.pci, []byte(w.driver+"\n"), 0o644)
	}
	if dev.rule == rule(dev.pci, w.driver) {
		return nil
	}
	return b.host.Conn().WriteFile(ctx, ruleFile(dev.pci), []byte(rule(dev.pci, w.driver)), 0o644)
}

// forget ends what keeps a driver over a reboot.
func (b *bus) forget(ctx context.Context, dev *device) error {
	var files []string
	if dev.driverctl != "" {
		files = append(files, controlDir+"/"+dev.pci)
	}
	if dev.rule != "" {
		files = append(files, ruleFile(dev.pci))
	}
	if len(files) == 0 {
		return nil
	}
	_, err := b.host.Conn().Run(ctx, providers.Cmd{Args: append([]string{"rm", "-f", "--"}, files...)})
	return err
}

// toKernel gives a device back to a kernel driver, "" for the one that the kernel chooses, and its interface what it had.
func (b *bus) toKernel(ctx context.Context, dev *device, driver string, u undo, log func(string)) error {
	if err := b.forget(ctx, dev); err != nil {
		return err
	}
	isKernel := func(d *device) bool {
		return d.driver != "" && !slices.Contains(userDrivers(), d.driver) && (driver == "" || d.driver == driver)
	}
	if isKernel(dev) && dev.override == "" {
		return b.refresh(ctx, dev, u)
	}
	dir := pciDir + "/" + dev.pci
	if driver != "" {
		if err := b.load(ctx, driver); err != nil {
			return err
		}
	}
	if err := b.write(ctx, dir+"/driver_override", driver+"\n"); err != nil {
		return err
	}
	if !isKernel(dev) {
		if dev.driver != "" {
			if err := b.write(ctx, driverDir+"/"+dev.driver+"/unbind", dev.pci); err != nil {
				return fmt.Errorf("take it from %s: %w", dev.driver, err)
			}
		}
		if err := b.write(ctx, probeFile, dev.pci); err != nil {
			return fmt.Errorf("have it probed: %w", err)
		}
	}
	var now *device
	err := b.wait(ctx, dev.pci, func(d *device) bool { now = d; return d.driver != "" }, "a driver")
	if err == nil && !isKernel(now) {
		err = fmt.Errorf("it should have a kernel driver, and %s has taken it again", now.driver)
	}
	if err != nil && driver == "" && u.Driver != "" && !slices.Contains(userDrivers(), u.Driver) {
		// A user driver that was once told the device's id (new_id, as driverctl does) takes it again: name the one that it had.
		if now, err = b.device(ctx, dev.pci); err != nil {
			return err
		}
		if err = b.move(ctx, now, u.Driver); err == nil {
			err = b.write(ctx, dir+"/driver_override", "\n")
		}
	}
	if err != nil || u.Interface == nil {
		return err
	}
	return b.giveBack(ctx, dev.pci, u.Interface, log)
}

// refresh gives an interface that is there what was recorded of it: it may have been away meanwhile, and come back without.
func (b *bus) refresh(ctx context.Context, dev *device, u undo) error {
	if u.Interface == nil || !slices.Contains(dev.interfaces, u.Interface.Name) {
		return nil
	}
	return restoreNetdev(ctx, b.host.Conn(), u.Interface.Name, u.Interface)
}

// giveBack waits for the interface and restores what was recorded of it.
func (b *bus) giveBack(ctx context.Context, pci string, was *netdev, log func(string)) error {
	// The kernel's name comes first, udev's after it.
	_, _ = b.host.Conn().Run(ctx, providers.Cmd{Args: []string{"udevadm", "settle", "--timeout=20"}})
	err := b.waitFor(ctx, renameLimit, pci, func(d *device) bool { return slices.Contains(d.interfaces, was.Name) }, "interface "+was.Name)
	name := was.Name
	if err != nil {
		d, lookErr := b.device(ctx, pci)
		if lookErr != nil || d.first() == "" {
			return err
		}
		name = d.first()
		log(fmt.Sprintf("the interface of %s was %s and is called %s now", pci, was.Name, name))
	}
	return restoreNetdev(ctx, b.host.Conn(), name, was)
}

// restore is the destroy of a setting: driver, mode, modules and interface as they were found.
func (b *bus) restore(ctx context.Context, w want, u undo, log func(string)) error {
	b.binding.Lock()
	defer b.binding.Unlock()
	devices, err := b.look(ctx)
	if err != nil {
		return err
	}
	dev := devices[w.pci]
	if dev == nil {
		return nil // whoever took the device out took its driver with it
	}
	switch {
	case u.Driver == dev.driver && u.Override == dev.override && u.Kept == dev.driverctl && dev.rule == "":
		if err := b.refresh(ctx, dev, u); err != nil {
			return err
		}
	case slices.Contains(userDrivers(), u.Driver):
		if err := b.forget(ctx, dev); err != nil {
			return err
		}
		if err := b.move(ctx, dev, u.Driver); err != nil {
			return err
		}
		if err := b.putBackOverride(ctx, w.pci, u); err != nil {
			return err
		}
	case u.Driver == "": // it had none
		if err := b.forget(ctx, dev); err != nil {
			return err
		}
		if dev.driver != "" {
			if err := b.write(ctx, driverDir+"/"+dev.driver+"/unbind", dev.pci); err != nil {
				return fmt.Errorf("take it from %s: %w", dev.driver, err)
			}
		}
		if err := b.putBackOverride(ctx, w.pci, u); err != nil {
			return err
		}
	default:
		if err := b.toKernel(ctx, dev, "", u, log); err != nil {
			return err
		}
		if err := b.putBackOverride(ctx, w.pci, u); err != nil {
			return err
		}
	}
	if u.NoIOMMU != nil && !*u.NoIOMMU {
		if err := b.write(ctx, unsafeFile, "N"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(u.Loaded) == 0 {
		return nil
	}
	_, err = b.host.Conn().Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", unloadScript, "plumb-nic-unload"}, u.Loaded...)})
	return err
}

// putBackOverride restores driver_override and what driverctl kept.
func (b *bus) putBackOverride(ctx context.Context, pci string, u undo) error {
	if err := b.write(ctx, pciDir+"/"+pci+"/driver_override", u.Override+"\n"); err != nil {
		return err
	}
	if u.Kept == "" {
		return nil
	}
	return b.host.Conn().WriteFile(ctx, controlDir+"/"+pci, []byte(u.Kept+"\n"), 0o644)
}

func (b *bus) device(ctx context.Context, pci string) (*device, error) {
	b.drop()
	devices, err := b.look(ctx)
	if err != nil {
		return nil, err
	}
	if d := devices[pci]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("there is no PCI device %s", pci)
}

func (b *bus) wait(ctx context.Context, pci string, ok func(*device) bool, what string) error {
	return b.waitFor(ctx, bindLimit, pci, ok, what)
}

func (b *bus) waitFor(ctx context.Context, limit time.Duration, pci string, ok func(*device) bool, what string) error {
	deadline := time.Now().Add(limit)
	for {
		d, err := b.device(ctx, pci)
		if err != nil {
			return err
		}
		if ok(d) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it should have %s, and after %s it has driver %s and interfaces %v", what, limit, called(d.driver), d.interfaces)
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (b *bus) write(ctx context.Context, name, text string) error {
	return b.host.Conn().WriteFile(ctx, name, []byte(text), 0o644)
}

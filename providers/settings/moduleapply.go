package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/dropin"
)

// Plan finds a module that the running kernel has not, one that it will not load, and a reload that is in somebody's way.
func (Module) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil {
		return res, err
	}
	res.Planned = with(res.Planned, map[string]cty.Value{"loaded": cty.True})
	if f == nil || !req.Prior.IsNull() && req.Prior.RawEquals(res.Planned) || !req.Proposed.GetAttr("name").IsKnown() {
		return res, nil
	}
	m, err := newModule(req.Proposed, req.Mark)
	if err != nil {
		return res, err
	}
	s, err := m.look(ctx, req.Host, req.Mark, false)
	if err != nil {
		return res, err
	}
	if !s.loaded {
		p, err := m.loadable(ctx, req.Host, f)
		res.Problems = append(res.Problems, p...)
		return res, err
	}
	fixed, err := m.fixed(ctx, req.Host, s)
	if err != nil || len(fixed) == 0 {
		return res, err
	}
	res.Cost = schema.ServiceRestart
	res.Effects = append(res.Effects, fmt.Sprintf("loads module %s anew on %s", m.name, req.Host.Name()))
	if why := s.inUse(); s.builtin {
		res.Problems = append(res.Problems, problem("options", "Module is built in",
			"%s is built into the kernel of %s, and its parameter %s can only be given on the kernel command line (host_kernel_args: %s.%s=%s).",
			m.name, req.Host.Name(), fixed[0], m.name, fixed[0], m.options[fixed[0]]))
	} else if why != "" {
		res.Problems = append(res.Problems, problem("options", "Module is in use",
			"%s is loaded on %s with other values of %s, which can only be given when it is loaded, and %s. Free it, or leave the parameter as it is: %s.",
			m.name, req.Host.Name(), strings.Join(fixed, ", "), why, spellOptions(s.differs(m.options))))
	}
	return res, nil
}

func spellOptions(o map[string]string) string {
	return strings.Join(module{options: o}.args(), " ")
}

// loadable says why the kernel would not load a module that it has not loaded yet.
func (m module) loadable(ctx context.Context, h providers.Host, f *providers.Facts) ([]providers.Problem, error) {
	out, err := run(ctx, h, "modinfo", "-F", "filename", "--", m.name)
	switch status, exited := exited(err); {
	case exited && status == 127:
		return []providers.Problem{{Host: h.Name(), Summary: "No kmod", Detail: fmt.Sprintf("%s has no modinfo: install the package kmod.", h.Name())}}, nil
	case exited:
		return []providers.Problem{problem("name", "No such kernel module", "The running kernel of %s, %s, has no module %s in /lib/modules/%s. Install the package that brings it for this kernel "+
			"(linux-modules-extra on Ubuntu, kernel-modules-extra on Fedora, a -dkms package), or boot a kernel that has it.", h.Name(), f.Kernel, m.name, f.Kernel)}, nil
	case err != nil:
		return nil, err
	case strings.TrimSpace(out) == "(builtin)":
		return nil, nil
	}
	secure := f.SecureBoot != nil && *f.SecureBoot
	locked := f.Lockdown == "integrity" || f.Lockdown == "confidentiality"
	if !secure && !locked {
		return nil, nil
	}
	signer, err := run(ctx, h, "modinfo", "-F", "signer", "--", m.name)
	if _, exited := exited(err); err != nil && !exited {
		return nil, err
	}
	why := "Secure Boot is on"
	if locked {
		why = fmt.Sprintf("the kernel is locked down (%s), as it is with Secure Boot", f.Lockdown)
	}
	switch {
	case m.name == "igb_uio":
		return []providers.Problem{problem("name", "Secure Boot refuses igb_uio", "%s: %s, and igb_uio, which is not part of Linux, lets user space program DMA without protection. "+
			"Use vfio-pci with the IOMMU instead, which works with Secure Boot, or turn Secure Boot off in the firmware.", h.Name(), why)}, nil
	case strings.TrimSpace(signer) == "":
		return []providers.Problem{problem("name", "Secure Boot refuses the module", "%s: %s, and module %s is not signed. Sign it with a key that the firmware trusts (mokutil), or turn Secure Boot off. "+
			"To give NICs to DPDK, vfio-pci is signed with the kernel.", h.Name(), why, m.name)}, nil
	}
	return nil, nil
}

// fixed lists the parameters that have another value and can only be given when the module is loaded.
func (m module) fixed(ctx context.Context, h providers.Host, s *seenModule) ([]string, error) {
	var files []string
	for _, k := range slices.Sorted(maps.Keys(s.differs(m.options))) {
		files = append(files, m.param(k))
	}
	if len(files) == 0 {
		return nil, nil
	}
	out, err := run(ctx, h, append([]string{"stat", "-c", "%a %n", "--"}, files...)...)
	if err != nil {
		return nil, fmt.Errorf("look at the parameters of module %s: %w", m.name, err)
	}
	var fixed []string
	for line := range strings.Lines(out) {
		mode, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		if len(mode) > 2 && !strings.ContainsAny(mode[len(mode)-3:len(mode)-2], "2367") { // the owner may not write
			fixed = append(fixed, path.Base(file))
		}
	}
	return fixed, nil
}

func (m module) param(name string) string { return path.Join(sysModule, m.name, "parameters", name) }

// inUse says who uses a module; "" when nobody does.
func (s *seenModule) inUse() string {
	switch {
	case len(s.holders) > 0:
		return "it is used by " + strings.Join(s.holders, ", ")
	case s.refs > 0:
		return fmt.Sprintf("it has %d users (devices that are bound to it, open files of it)", s.refs)
	}
	return ""
}

// Apply loads it with its parameters, or takes back what was done.
func (Module) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c, err := cacheOf[map[string][]byte](ctx, req.Host, modulesKey{})
	if err != nil {
		return providers.ApplyResult{}, err
	}
	defer c.drop()
	u, err := recorded[undoModule](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	target := req.Planned
	if target.IsNull() {
		target = req.Prior
	}
	m, err := newModule(target, req.Mark)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if req.Planned.IsNull() {
		m.boot = false
		if err := m.keep(ctx, req); err != nil {
			return providers.ApplyResult{}, err
		}
		return providers.ApplyResult{New: req.Planned}, m.restore(ctx, req, u)
	}
	// The options file first: then whoever loads the module in between loads it right.
	if err := m.keep(ctx, req); err != nil {
		return providers.ApplyResult{}, err
	}
	// Parameters that the configuration names no longer get back what was found.
	was := m
	was.options = maps.Clone(m.options)
	for k, v := range u.Params {
		if _, named := was.options[k]; !named {
			was.options[k] = v
		}
	}
	if err := was.converge(ctx, req); err != nil {
		return providers.ApplyResult{}, err
	}
	return providers.ApplyResult{New: with(req.Planned, map[string]cty.Value{"loaded": cty.True})}, nil
}

// keep writes and removes the files of ours.
func (m module) keep(ctx context.Context, req providers.ApplyRequest) error {
	var errs []error
	for file, body := range m.bodies() {
		if body == "" {
			errs = append(errs, dropin.Remove(ctx, req.Host.Conn(), file, req.Mark))
		} else {
			errs = append(errs, dropin.Write(ctx, req.Host.Conn(), file, req.Mark, body))
		}
	}
	return errors.Join(errs...)
}

// converge loads the module, or changes its parameters: by writing them, or where that is not possible by loading it anew.
func (m module) converge(ctx context.Context, req providers.ApplyRequest) error {
	s, err := m.look(ctx, req.Host, req.Mark, true)
	if err != nil {
		return err
	}
	if !s.loaded {
		return m.insert(ctx, req)
	}
	fixed, err := m.fixed(ctx, req.Host, s)
	if err != nil {
		return err
	}
	if len(fixed) > 0 {
		return m.reload(ctx, req, s)
	}
	for _, k := range slices.Sorted(maps.Keys(s.differs(m.options))) {
		if err := req.Host.Conn().WriteFile(ctx, m.param(k), []byte(m.options[k]+"\n"), 0o644); err != nil {
			return fmt.Errorf("set parameter %s of module %s to %q, which is %q: %w", k, m.name, m.options[k], s.params[k], err)
		}
	}
	return m.verify(ctx, req)
}

func (m module) insert(ctx context.Context, req providers.ApplyRequest) error {
	args := append([]string{"modprobe", "--", m.name}, m.args()...)
	if _, err := req.Host.Conn().Run(ctx, providers.Cmd{Args: args}); err != nil {
		return fmt.Errorf("load module %s: %w", m.name, err)
	}
	return m.verify(ctx, req)
}

func (m module) reload(ctx context.Context, req providers.ApplyRequest, s *seenModule) error {
	if why := s.inUse(); why != "" {
		return fmt.Errorf("module %s has to be loaded anew for %s, and %s: free it first", m.name, spellOptions(m.options), why)
	}
	req.Log(fmt.Sprintf("loads module %s anew on %s", m.name, req.Host.Name()))
	if _, err := run(ctx, req.Host, "rmmod", "--", m.name); err != nil {
		return fmt.Errorf("unload module %s to load it anew: %w", m.name, err)
	}
	return m.insert(ctx, req)
}

// verify reads back.
func (m module) verify(ctx context.Context, req providers.ApplyRequest) error {
	s, err := m.look(ctx, req.Host, req.Mark, true)
	if err != nil {
		return err
	}
	if !s.loaded {
		return fmt.Errorf("module %s: modprobe reported success, and it is not in /proc/modules: does a file of %s blacklist it, or install something else?", m.name, modprobeDir)
	}
	if wrong := s.differs(m.options); len(wrong) > 0 {
		return fmt.Errorf("module %s took %s and has %s", m.name, spellOptions(m.options), spellOptions(wrong))
	}
	return nil
}

// restore unloads what was loaded for the instance, or puts back the parameters.
func (m module) restore(ctx context.Context, req providers.ApplyRequest, u undoModule) error {
	s, err := m.look(ctx, req.Host, req.Mark, true)
	if err != nil || u.Loaded && !s.loaded {
		return err // somebody unloaded it since
	}
	if u.Loaded {
		m.options = u.Params
		return m.converge(ctx, req)
	}
	if why := s.inUse(); s.loaded && slices.Contains(u.Ours, m.name) && why != "" {
		return fmt.Errorf("unload module %s, which was not loaded before: %s. Free it and run destroy again", m.name, why)
	}
	for _, name := range slices.Backward(u.Ours) {
		x := module{name: name}
		s, err := x.look(ctx, req.Host, req.Mark, true)
		if err != nil {
			return err
		}
		if !s.loaded || name != m.name && s.inUse() != "" {
			continue // others use by now what it needed: they keep it
		}
		if _, err := run(ctx, req.Host, "rmmod", "--", name); err != nil {
			return fmt.Errorf("unload module %s, which was not loaded before: %w", name, err)
		}
	}
	return nil
}

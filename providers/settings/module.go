package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/dropin"
)

// Module is host_module: a kernel module that is loaded, its parameters, and what the next boot makes of it.
type Module struct{}

var (
	_ providers.Resource = Module{}
	_ providers.Preparer = Module{}
	_ providers.Planner  = Module{}
	_ providers.Claimer  = Module{}
)

const (
	sysModule   = "/sys/module"
	loadDir     = "/etc/modules-load.d"
	modprobeDir = "/etc/modprobe.d"
)

// Schema is constant.
func (Module) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "host_module",
		Description: "A kernel module. One that is built into the kernel counts as loaded. Destroy unloads what was loaded for it, modules that it needs included, and " +
			"puts back the parameters that were found.",
		Example: `resource "host_module" "vfio" {
  name    = "vfio-pci"
  options = { disable_idle_d3 = "1" }
  at_boot = true
}`,
		Setting: true,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"name": {Type: cty.String, Required: true, Cost: schema.Replace, Canonical: canonicalModule,
				Description: "Name as modprobe(8) takes it. Dash and underscore are the same."},
			"options": {Type: cty.Map(cty.String), Optional: true, Default: cty.MapValEmpty(cty.String), Validate: validOptions,
				Description: "Parameters by name: { enable_unsafe_noiommu_mode = \"1\" }. One that /sys/module lets write is written; for any other the module is loaded anew, " +
					"which is refused while it is in use. One that /sys/module does not show is only given when the module is loaded."},
			"at_boot": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Whether files of Plumb's own in /etc/modules-load.d and /etc/modprobe.d load it at boot with these parameters. They are removed by destroy."},
			"loaded": {Type: cty.Bool, Computed: true,
				Description: "Whether it is loaded. False only when somebody has unloaded it: the next apply loads it."},
		}},
	}
}

// moduleName is the kernel's name of a module.
func moduleName(s string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,55}$`).MatchString(s) { // MODULE_NAME_LEN of include/linux/moduleparam.h
		return "", fmt.Errorf("%q is not the name of a kernel module", s)
	}
	return strings.ReplaceAll(s, "-", "_"), nil
}

func canonicalModule(v cty.Value) (cty.Value, error) {
	s, err := moduleName(v.AsString())
	return cty.StringVal(s), err
}

func validOptions(v cty.Value) error {
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`).MatchString(k.AsString()) {
			return fmt.Errorf("%q is not the name of a module parameter", k.AsString())
		}
		if !e.IsKnown() {
			continue
		}
		if e.IsNull() {
			return fmt.Errorf("parameter %s has no value", k.AsString())
		}
		// modprobe.d(5) knows no quoting that every version of kmod agrees on.
		if s := e.AsString(); strings.ContainsAny(s, " \t\n\r\x00\"'\\#") {
			return fmt.Errorf("parameter %s: %q holds a blank, a quote, a backslash or #, which cannot stand in modprobe.d", k.AsString(), s)
		}
	}
	return nil
}

// sameOption says that the kernel's spelling of a value is the one that was given: 1, Y and yes; 16 and 0x10.
func sameOption(want, have string) bool {
	have = strings.TrimSpace(have)
	if want == have {
		return true
	}
	if have == "Y" || have == "N" { // kstrtobool of lib/kstrtox.c
		switch strings.ToLower(want) {
		case "1", "y", "yes", "t", "true", "on":
			return have == "Y"
		case "0", "n", "no", "f", "false", "off":
			return have == "N"
		}
	}
	a, err1 := strconv.ParseInt(want, 0, 64)
	b, err2 := strconv.ParseInt(have, 0, 64)
	return err1 == nil && err2 == nil && a == b
}

// module is what an instance wants.
type module struct {
	name    string
	options map[string]string
	boot    bool
	load    string // files of ours
	conf    string
}

func newModule(v cty.Value, m providers.Mark) (module, error) {
	name, err := moduleName(attr.Text(v, "name"))
	if err != nil {
		return module{}, err
	}
	options, _ := pairs(v, "options")
	return module{name: name, options: options, boot: attr.Truth(v, "at_boot", false),
		load: dropin.Path(loadDir, "plumb", ".conf", m), conf: dropin.Path(modprobeDir, "plumb", ".conf", m)}, nil
}

// args are the options as modprobe takes them, in a fixed order.
func (m module) args() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m.options)) {
		out = append(out, k+"="+m.options[k])
	}
	return out
}

// bodies are what the files of ours hold; "" for one that is not wanted.
func (m module) bodies() map[string]string {
	out := map[string]string{m.load: "", m.conf: ""}
	if m.boot {
		out[m.load] = m.name + "\n"
		if len(m.options) > 0 {
			out[m.conf] = "options " + m.name + " " + strings.Join(m.args(), " ") + "\n"
		}
	}
	return out
}

// seenModule is a module on its host.
type seenModule struct {
	loaded  bool // or built in
	builtin bool
	refs    int
	holders []string
	params  map[string]string
	kept    bool // the files of ours are as wanted
}

type modulesKey struct{}

// modulesOf reads what all instances look at: the modules that are loaded, and the files of ours.
func modulesOf(ctx context.Context, h providers.Host, fresh bool) (map[string][]byte, error) {
	c, err := cacheOf[map[string][]byte](ctx, h, modulesKey{})
	if err != nil {
		return nil, err
	}
	if fresh {
		c.drop()
	}
	return c.get(ctx, func(ctx context.Context) (map[string][]byte, error) {
		return h.Conn().ReadFiles(ctx, "/proc/modules", loadDir+"/plumb-*", modprobeDir+"/plumb-*")
	})
}

// look reads one module: what is shared of it anew if fresh, its parameters always.
func (m module) look(ctx context.Context, h providers.Host, mark providers.Mark, fresh bool) (*seenModule, error) {
	files, err := modulesOf(ctx, h, fresh)
	if err != nil {
		return nil, fmt.Errorf("read modules: %w", err)
	}
	s := &seenModule{params: map[string]string{}, kept: true}
	s.parse(m.name, string(files["/proc/modules"]))
	if !s.loaded {
		builtin, err := builtinModules(ctx, h)
		if err != nil {
			return nil, err
		}
		s.builtin = builtin[m.name]
		s.loaded = s.builtin
	}
	if s.loaded && len(m.options) > 0 {
		params, err := h.Conn().ReadFiles(ctx, path.Join(sysModule, m.name, "parameters/*"))
		if err != nil && len(params) == 0 { // a parameter may be one that can only be written
			return nil, fmt.Errorf("read module %s: %w", m.name, err)
		}
		for name, b := range params {
			s.params[path.Base(name)] = strings.TrimSpace(string(b))
		}
	}
	for file, want := range m.bodies() {
		body, ours := dropin.Body(files[file], mark)
		s.kept = s.kept && (ours && body == want || !ours && want == "")
	}
	return s, nil
}

type builtinKey struct{}

// builtinModules are those that the running kernel has within it: they do not change while it runs.
func builtinModules(ctx context.Context, h providers.Host) (map[string]bool, error) {
	c, err := cacheOf[map[string]bool](ctx, h, builtinKey{})
	if err != nil {
		return nil, err
	}
	return c.get(ctx, func(ctx context.Context) (map[string]bool, error) {
		f, err := h.Facts(ctx)
		if err != nil {
			return nil, err
		}
		list := path.Join("/lib/modules", path.Join("/", f.Kernel), "modules.builtin")
		files, err := h.Conn().ReadFiles(ctx, list)
		if err != nil {
			return nil, err
		}
		out := map[string]bool{}
		for line := range strings.Lines(string(files[list])) {
			if name := fileModule(strings.TrimSpace(line)); name != "" {
				out[name] = true
			}
		}
		return out, nil
	})
}

// parse finds the module in /proc/modules: name, size, references, users, state.
func (s *seenModule) parse(name, loaded string) {
	for line := range strings.Lines(loaded) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != name {
			continue
		}
		s.loaded = true
		s.refs, _ = strconv.Atoi(f[2]) // "-" where modules cannot be unloaded
		for u := range strings.SplitSeq(f[3], ",") {
			if u != "" && u != "-" {
				s.holders = append(s.holders, u)
			}
		}
	}
}

// fileModule is the name of the module in a file such as kernel/drivers/vfio/pci/vfio-pci.ko.xz.
func fileModule(file string) string {
	name, _, ok := strings.Cut(path.Base(file), ".ko")
	if !ok {
		return ""
	}
	return strings.ReplaceAll(name, "-", "_")
}

// Read reports whether it is loaded, and the parameters as they are where they differ.
func (Module) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	if req.Host == nil {
		return providers.ReadResult{}, errNoHost
	}
	m, err := newModule(req.Prior, req.Mark)
	if err != nil {
		return providers.ReadResult{}, err
	}
	s, err := m.look(ctx, req.Host, req.Mark, false)
	if err != nil {
		return providers.ReadResult{}, err
	}
	now := map[string]cty.Value{"loaded": cty.BoolVal(s.loaded)}
	if wrong := s.differs(m.options); s.loaded && len(wrong) > 0 {
		options := maps.Clone(m.options)
		maps.Copy(options, wrong)
		now["options"] = textMap(options)
	}
	if !s.kept {
		now["at_boot"] = cty.BoolVal(!m.boot)
	}
	return providers.ReadResult{Current: with(req.Prior, now)}, nil
}

// differs are the parameters that are shown and have another value, with that value.
func (s *seenModule) differs(options map[string]string) map[string]string {
	out := map[string]string{}
	for k, want := range options {
		if have, shown := s.params[k]; shown && !sameOption(want, have) {
			out[k] = have
		}
	}
	return out
}

// Claims says that the module is one instance's.
func (Module) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	if !planned.GetAttr("name").IsKnown() {
		return providers.Claims{}, nil
	}
	name, err := moduleName(attr.Text(planned, "name"))
	return providers.Claims{Unique: []providers.Unique{{Scope: "kernel module", Value: name, Path: cty.GetAttrPath("name")}}}, err
}

// undoModule is what was found.
type undoModule struct {
	Loaded bool              `json:"loaded"`           // before us
	Ours   []string          `json:"ours,omitempty"`   // modules that loading it loads, in that order, itself included
	Params map[string]string `json:"params,omitempty"` // of those that are managed, while it was loaded before us
}

// Prepare records whether it was loaded, what loading it will load, and the parameters.
func (Module) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := recorded[undoModule](req.Undo)
	if err != nil {
		return nil, err
	}
	m, err := newModule(req.Planned, req.Mark)
	if err != nil {
		return nil, err
	}
	s, err := m.look(ctx, req.Host, req.Mark, true)
	if err != nil {
		return nil, err
	}
	if len(req.Undo) == 0 {
		u.Loaded = s.loaded
		if !s.loaded {
			if u.Ours, err = m.brings(ctx, req.Host); err != nil {
				return nil, err
			}
		}
	}
	if u.Loaded {
		if u.Params == nil {
			u.Params = map[string]string{}
		}
		for k := range m.options {
			if have, shown := s.params[k]; shown {
				if _, known := u.Params[k]; !known {
					u.Params[k] = have
				}
			}
		}
	}
	return json.Marshal(u)
}

// brings lists the modules that loading this one would load now, in that order.
func (m module) brings(ctx context.Context, h providers.Host) ([]string, error) {
	out, err := run(ctx, h, "modprobe", "--show-depends", "--", m.name)
	if err != nil {
		return nil, fmt.Errorf("find out what module %s needs: %w", m.name, err)
	}
	files, err := h.Conn().ReadFiles(ctx, "/proc/modules")
	if err != nil {
		return nil, err
	}
	return newModules(out, string(files["/proc/modules"])), nil
}

// newModules reads what modprobe --show-depends prints: "insmod FILE OPTIONS" and "builtin NAME".
func newModules(depends, loaded string) []string {
	var out []string
	for line := range strings.Lines(depends) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "insmod" {
			continue
		}
		name := fileModule(f[1])
		there := strings.HasPrefix(loaded, name+" ") || strings.Contains(loaded, "\n"+name+" ")
		if name != "" && !there && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

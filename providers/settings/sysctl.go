package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/dropin"
)

// Sysctl is host_sysctl: one parameter of the running kernel, and what the next boot makes of it.
type Sysctl struct{}

var (
	_ providers.Resource = Sysctl{}
	_ providers.Preparer = Sysctl{}
	_ providers.Planner  = Sysctl{}
	_ providers.Claimer  = Sysctl{}
)

const (
	procSys   = "/proc/sys"
	sysctlDir = "/etc/sysctl.d"
)

// Schema is constant.
func (Sysctl) Schema() *schema.Resource {
	return &schema.Resource{
		Type:        "host_sysctl",
		Description: "One kernel parameter below /proc/sys (Linux, Documentation/admin-guide/sysctl). What was found is put back by destroy.",
		Example: `resource "host_sysctl" "rmem" {
  key   = "net.core.rmem_max"
  value = "33554432"
}`,
		Setting: true,
		After:   []string{"host_module"},
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"key": {Type: cty.String, Required: true, Cost: schema.Replace, Canonical: canonicalKey,
				Description: "Name with dots or with slashes, as sysctl(8) takes it: net.ipv4.ip_forward, net/ipv4/conf/eth0.1/forwarding, net.ipv4.conf.eth0/1.forwarding."},
			"value": {Type: cty.String, Required: true, Validate: oneLine, Canonical: canonicalValue,
				Description: "Value as the kernel prints it. Several numbers are separated by blanks: 4096 87380 6291456."},
			"persistent": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Whether a file of Plumb's own in /etc/sysctl.d sets it at boot, too. It is removed by destroy."},
		}},
	}
}

// keyPath is the path of a key below /proc/sys. When the first separator is a slash, dots are dots; else slashes stand for them (sysctl(8)).
func keyPath(key string) (string, error) {
	p := key
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' {
		p = strings.NewReplacer(".", "/", "/", ".").Replace(key)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_:@+,=~.-]+(/[A-Za-z0-9_:@+,=~.-]+)+$`).MatchString(p) {
		return "", fmt.Errorf("%q is not the name of a kernel parameter, such as net.core.rmem_max", key)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "." || part == ".." {
			return "", fmt.Errorf("%q is not the name of a kernel parameter: it leaves its folder", key)
		}
	}
	return p, nil
}

func canonicalKey(v cty.Value) (cty.Value, error) {
	p, err := keyPath(v.AsString())
	return cty.StringVal(p), err
}

// spaced writes a value with single blanks: the kernel prints tabs.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

func canonicalValue(v cty.Value) (cty.Value, error) { return cty.StringVal(spaced(v.AsString())), nil }

// parameter is one instance on its host.
type parameter struct {
	key, file string // key in its form with slashes
	value     string
	dropin    string // path of the file of ours
	body      string // what it must hold
	persist   bool
}

func newParameter(v cty.Value, m providers.Mark) (parameter, error) {
	key, err := keyPath(attr.Text(v, "key"))
	if err != nil {
		return parameter{}, err
	}
	p := parameter{key: key, file: path.Join(procSys, key), value: spaced(attr.Text(v, "value")), persist: attr.Truth(v, "persistent", false),
		// Read after all others, /etc/sysctl.conf by its link 99-sysctl.conf included.
		dropin: dropin.Path(sysctlDir, "zz-plumb", ".conf", m)}
	p.body = key + " = " + p.value + "\n"
	return p, nil
}

// look reads the value and whether our file is there and right.
func (p parameter) look(ctx context.Context, conn providers.Conn, m providers.Mark) (value string, there, kept bool, err error) {
	files, err := conn.ReadFiles(ctx, p.file, p.dropin)
	if err != nil {
		return "", false, false, fmt.Errorf("read kernel parameter %s: %w", p.key, err)
	}
	b, there := files[p.file]
	body, ours := dropin.Body(files[p.dropin], m)
	return strings.TrimSuffix(string(b), "\n"), there, ours && body == p.body, nil
}

type parametersKey struct{}

// parameters keeps what was read for one host and run, by pattern.
type parameters struct {
	batch *batch[map[string][]byte]
	mu    sync.Mutex
	seen  map[string]map[string][]byte
}

// pattern stands for all parameters that are read together with this one: those of its folder, or the same of all interfaces.
func (p parameter) pattern() string {
	parts := strings.Split(p.key, "/")
	if len(parts) == 5 && parts[0] == "net" {
		return path.Join(procSys, parts[0], parts[1], parts[2], "*", parts[4])
	}
	return path.Join(path.Dir(p.file), "*")
}

func parametersOf(ctx context.Context, h providers.Host) (*parameters, error) {
	if h == nil {
		return nil, errNoHost
	}
	v, err := h.Shared(ctx, parametersKey{}, func(context.Context) (any, error) {
		return &parameters{seen: map[string]map[string][]byte{}, batch: newBatch(func(ctx context.Context, patterns []string) (map[string]map[string][]byte, error) {
			// Of some parameters the kernel refuses the reading: those that are meant are read by themselves.
			files, err := h.Conn().ReadFiles(ctx, append(slices.Clone(patterns), sysctlDir+"/zz-plumb-*")...)
			if errors.Is(err, providers.ErrUnreachable) || ctx.Err() != nil || err != nil && len(files) == 0 {
				return nil, err
			}
			out := map[string]map[string][]byte{}
			for _, p := range patterns {
				out[p] = files
			}
			return out, nil
		})}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*parameters), nil
}

// get reads what a pattern stands for, once.
func (a *parameters) get(ctx context.Context, pattern string) (map[string][]byte, error) {
	a.mu.Lock()
	files, seen := a.seen[pattern]
	a.mu.Unlock()
	if seen {
		return files, nil
	}
	files, err := a.batch.get(ctx, pattern)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[pattern] = files
	return files, nil
}

// changed makes whoever reads next read anew.
func (a *parameters) changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = map[string]map[string][]byte{}
}

// shared is look for reading alone: instances share what they read, whosever parameters it has.
func (p parameter) shared(ctx context.Context, h providers.Host, m providers.Mark) (value string, there, kept bool, err error) {
	all, err := parametersOf(ctx, h)
	if err != nil {
		return "", false, false, err
	}
	files, err := all.get(ctx, p.pattern())
	if err != nil {
		return "", false, false, fmt.Errorf("read kernel parameter %s: %w", p.key, err)
	}
	b, there := files[p.file]
	if !there {
		return p.look(ctx, h.Conn(), m)
	}
	body, ours := dropin.Body(files[p.dropin], m)
	return strings.TrimSuffix(string(b), "\n"), true, ours && body == p.body, nil
}

// Read reports the value, "" for a parameter that is not there.
func (Sysctl) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	p, err := newParameter(req.Prior, req.Mark)
	if err != nil {
		return providers.ReadResult{}, err
	}
	value, _, kept, err := p.shared(ctx, req.Host, req.Mark)
	if err != nil {
		return providers.ReadResult{}, err
	}
	now := map[string]cty.Value{}
	if spaced(value) != p.value {
		now["value"] = cty.StringVal(spaced(value))
	}
	if p.persist && !kept {
		now["persistent"] = cty.False
	}
	return providers.ReadResult{Current: with(req.Prior, now)}, nil
}

// Plan finds a parameter that the kernel does not have.
func (Sysctl) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil || f == nil || unchanged(req) || !req.Proposed.GetAttr("key").IsKnown() {
		return res, err
	}
	p, err := newParameter(req.Proposed, req.Mark)
	if err != nil {
		return res, err
	}
	_, there, _, err := p.shared(ctx, req.Host, req.Mark)
	if err != nil {
		return res, err
	}
	if !there && !dependsOnOthers(p.key) {
		res.Problems = append(res.Problems, problem("key", "No such kernel parameter",
			"%s has no %s: the kernel %s does not know it, or the module that brings it is not loaded (host_module).", req.Host.Name(), p.file, f.Kernel))
	}
	return res, nil
}

// dependsOnOthers says that a parameter may come with an interface that the same apply makes.
func dependsOnOthers(key string) bool {
	return regexp.MustCompile(`^net/(ipv4|ipv6|mpls)/(conf|neigh)/`).MatchString(key)
}

// undoSysctl is what was found.
type undoSysctl struct {
	Value *string `json:"value"` // as it was read; nil: the parameter was not there
}

// Prepare records the value.
func (Sysctl) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := recorded[undoSysctl](req.Undo)
	if err != nil {
		return nil, err
	}
	p, err := newParameter(req.Planned, req.Mark)
	if err != nil {
		return nil, err
	}
	if u.Value == nil {
		value, there, _, err := p.look(ctx, req.Host.Conn(), req.Mark)
		if err != nil {
			return nil, err
		}
		if there {
			u.Value = &value
		}
	}
	return json.Marshal(u)
}

// Apply sets the value, or puts back what was found.
func (Sysctl) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	conn := req.Host.Conn()
	all, err := parametersOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	defer all.changed()
	if req.Planned.IsNull() {
		u, err := recorded[undoSysctl](req.Undo)
		if err != nil {
			return providers.ApplyResult{}, err
		}
		p, err := newParameter(req.Prior, req.Mark)
		if err != nil {
			return providers.ApplyResult{}, err
		}
		if err := dropin.Remove(ctx, conn, p.dropin, req.Mark); err != nil {
			return providers.ApplyResult{}, err
		}
		if u.Value != nil {
			err = p.set(ctx, conn, req.Mark, *u.Value)
		}
		if errors.Is(err, errNoParameter) {
			err = nil // it went with its interface or module: nothing is left to put back
		}
		return providers.ApplyResult{New: req.Planned}, err
	}
	p, err := newParameter(req.Planned, req.Mark)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if err := p.set(ctx, conn, req.Mark, attr.Text(req.Planned, "value")); err != nil {
		return providers.ApplyResult{}, err
	}
	if p.persist {
		err = dropin.Write(ctx, conn, p.dropin, req.Mark, p.body)
	} else {
		err = dropin.Remove(ctx, conn, p.dropin, req.Mark)
	}
	return providers.ApplyResult{New: req.Planned}, err
}

var errNoParameter = errors.New("the kernel has no such parameter")

// set writes a value if it differs and reads it back.
func (p parameter) set(ctx context.Context, conn providers.Conn, m providers.Mark, value string) error {
	found, there, _, err := p.look(ctx, conn, m)
	switch {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("set %s: %w", p.key, errNoParameter)
	case spaced(found) == spaced(value):
		return nil
	}
	if err := conn.WriteFile(ctx, p.file, []byte(value+"\n"), 0o644); err != nil {
		return fmt.Errorf("set %s to %q: the kernel refuses it, and the value stays %q: %w", p.key, spaced(value), spaced(found), err)
	}
	now, _, _, err := p.look(ctx, conn, m)
	if err != nil {
		return err
	}
	if spaced(now) != spaced(value) {
		return fmt.Errorf("set %s to %q: the kernel took it and made %q of it (it was %q): write that, or a value in its range", p.key, spaced(value), spaced(now), spaced(found))
	}
	return nil
}

// Claims says that the parameter is one instance's.
func (Sysctl) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	if !planned.GetAttr("key").IsKnown() {
		return providers.Claims{}, nil
	}
	key, err := keyPath(attr.Text(planned, "key"))
	return providers.Claims{Unique: []providers.Unique{{Scope: "kernel parameter", Value: key, Path: cty.GetAttrPath("key")}}}, err
}

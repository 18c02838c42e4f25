// Package addrs gives every object of a configuration an address that can be compared, used as a map key,
// printed and parsed back.
//
// Addresses are values of the types below, never strings that somebody splits by hand. The printed form is
// Terraform's: module.pvp["a"].ovs_port.p0[2], data.host_facts.dut, host.dut, generator.testpmd.tg,
// benchmark.pvp. Start reading at Instance.
package addrs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Mode tells a managed resource from a data source.
type Mode uint8

const (
	Managed Mode = iota // resource "type" "name"
	Data                // data "type" "name"
)

func (m Mode) String() string {
	if m == Data {
		return "data"
	}
	return "managed"
}

// Key is the instance key of count (an integer), for_each (a string) or of neither (the zero Key).
type Key struct {
	kind keyKind
	num  int
	str  string
}

type keyKind uint8

const (
	noKey keyKind = iota
	intKey
	stringKey
)

// IntKey is the key of an instance made by count.
func IntKey(i int) Key { return Key{kind: intKey, num: i} }

// StringKey is the key of an instance made by for_each.
func StringKey(s string) Key { return Key{kind: stringKey, str: s} }

// IsNone says that the object has neither count nor for_each.
func (k Key) IsNone() bool { return k.kind == noKey }

// Int returns the number of a count key.
func (k Key) Int() (int, bool) { return k.num, k.kind == intKey }

// Str returns the string of a for_each key.
func (k Key) Str() (string, bool) { return k.str, k.kind == stringKey }

// Value is the key as expressions see it; cty.NilVal for no key.
func (k Key) Value() cty.Value {
	switch k.kind {
	case intKey:
		return cty.NumberIntVal(int64(k.num))
	case stringKey:
		return cty.StringVal(k.str)
	}
	return cty.NilVal
}

// String prints the key with its brackets: `[0]`, `["a"]`, or nothing.
func (k Key) String() string {
	switch k.kind {
	case intKey:
		return "[" + strconv.Itoa(k.num) + "]"
	case stringKey:
		return "[" + quote(k.str) + "]"
	}
	return ""
}

// Compare orders keys: none, numbers by value, strings bytewise.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.kind, o.kind), cmp.Compare(k.num, o.num), cmp.Compare(k.str, o.str))
}

// Module is the path of a module: with instance keys (one instance of it) or without (its place in the
// configuration). The zero Module is the root.
type Module struct {
	path string // canonical: module.a["x"].module.b
}

// Root is the root module.
func Root() Module { return Module{} }

// IsRoot says whether m is the root module.
func (m Module) IsRoot() bool { return m.path == "" }

// Child is the module called name inside m, with the instance key of the call.
func (m Module) Child(name string, key Key) Module {
	step := "module." + name + key.String()
	if m.path != "" {
		step = m.path + "." + step
	}
	return Module{path: step}
}

// String prints the path; nothing for the root.
func (m Module) String() string { return m.path }

// Prefix puts the module's path before the address of an object in it.
func (m Module) Prefix(object string) string {
	if m.path == "" {
		return object
	}
	return m.path + "." + object
}

// Static is the module's place in the configuration: m without instance keys.
func (m Module) Static() Module {
	if !strings.Contains(m.path, "[") {
		return m
	}
	out := Root()
	for _, s := range m.Steps() {
		out = out.Child(s.Name, Key{})
	}
	return out
}

// Step is one call on the way from the root to a module.
type Step struct {
	Name string
	Key  Key
}

// Steps lists the calls from the root down to m.
func (m Module) Steps() []Step {
	var out []Step
	p := parser{in: m.path}
	for p.in != "" {
		s, err := p.moduleStep()
		if err != nil {
			panic("addrs: module path that Child did not make: " + m.path)
		}
		out = append(out, s)
		p.accept(".")
	}
	return out
}

// Parent is the module that calls m; false for the root.
func (m Module) Parent() (Module, bool) {
	steps := m.Steps()
	if len(steps) == 0 {
		return Module{}, false
	}
	out := Root()
	for _, s := range steps[:len(steps)-1] {
		out = out.Child(s.Name, s.Key)
	}
	return out, true
}

// Resource addresses all instances of a resource or data block in one module (or module instance).
type Resource struct {
	Module Module
	Mode   Mode
	Type   string
	Name   string
}

// String prints module.a.ovs_port.p0 or module.a.data.host_facts.h.
func (r Resource) String() string { return r.Module.Prefix(r.Local()) }

// Local prints the address inside its module.
func (r Resource) Local() string {
	if r.Mode == Data {
		return "data." + r.Type + "." + r.Name
	}
	return r.Type + "." + r.Name
}

// Static is the resource's place in the configuration: module keys removed.
func (r Resource) Static() Resource { r.Module = r.Module.Static(); return r }

// Instance is the instance of r with the given key.
func (r Resource) Instance(k Key) Instance { return Instance{Resource: r, Key: k} }

// Compare orders resources by module, mode, type, name.
func (r Resource) Compare(o Resource) int {
	return cmp.Or(cmp.Compare(r.Module.path, o.Module.path), cmp.Compare(r.Mode, o.Mode),
		cmp.Compare(r.Type, o.Type), cmp.Compare(r.Name, o.Name))
}

// Instance addresses one instance of a resource. It is comparable and is the key of state and plan.
type Instance struct {
	Resource Resource
	Key      Key
}

// String prints module.a["x"].ovs_port.p0[1].
func (i Instance) String() string { return i.Resource.String() + i.Key.String() }

// Compare orders instances by resource, then key.
func (i Instance) Compare(o Instance) int {
	return cmp.Or(i.Resource.Compare(o.Resource), i.Key.Compare(o.Key))
}

// MarshalText writes the printed form, so that JSON documents carry addresses as text.
func (i Instance) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText parses the printed form.
func (i *Instance) UnmarshalText(b []byte) error {
	v, err := ParseInstance(string(b))
	if err == nil {
		*i = v
	}
	return err
}

// Object addresses a generator or benchmark: kind, type ("" for a benchmark) and name in a module instance.
type Object struct {
	Module Module
	Kind   string // "generator" or "benchmark"
	Type   string
	Name   string
}

// String prints generator.testpmd.tg or module.a.benchmark.pvp.
func (o Object) String() string {
	if o.Type == "" {
		return o.Module.Prefix(o.Kind + "." + o.Name)
	}
	return o.Module.Prefix(o.Kind + "." + o.Type + "." + o.Name)
}

// ParseInstance parses the printed form of an Instance, as given to -target or read from a state. An address
// without a key names the instance without one. The error says what is wrong and where.
func ParseInstance(s string) (Instance, error) {
	p := parser{in: s}
	r, err := p.resource()
	if err != nil {
		return Instance{}, fmt.Errorf("address %q: %w", s, err)
	}
	k, err := p.key()
	if err != nil {
		return Instance{}, fmt.Errorf("address %q: %w", s, err)
	}
	if p.in != "" {
		return Instance{}, fmt.Errorf("address %q: unexpected %q after the address", s, p.in)
	}
	return Instance{Resource: r, Key: k}, nil
}

// Target is what -target and -replace name: a module with all in it, a resource with all its instances, or one instance.
type Target struct {
	Module   Module
	Resource *Resource // nil: the whole module
	Key      *Key      // nil: every instance
}

// ParseTarget parses an argument of -target.
func ParseTarget(s string) (Target, error) {
	p := parser{in: s}
	m, err := p.module()
	if err != nil {
		return Target{}, fmt.Errorf("address %q: %w", s, err)
	}
	if p.in == "" && !m.IsRoot() {
		return Target{Module: m}, nil
	}
	r, err := p.resource()
	if err != nil {
		return Target{}, fmt.Errorf("address %q: %w", s, err)
	}
	r.Module = m
	t := Target{Module: m, Resource: &r}
	if p.in != "" {
		k, err := p.key()
		if err == nil && p.in != "" {
			err = fmt.Errorf("unexpected %q after the address", p.in)
		}
		if err != nil {
			return Target{}, fmt.Errorf("address %q: %w", s, err)
		}
		t.Key = &k
	}
	return t, nil
}

// Contains says whether the target covers the instance. A module without keys covers all its instances.
func (t Target) Contains(i Instance) bool {
	if t.Resource == nil {
		return within(t.Module, i.Resource.Module)
	}
	if t.Resource.Mode != i.Resource.Mode || t.Resource.Type != i.Resource.Type || t.Resource.Name != i.Resource.Name {
		return false
	}
	if t.Module != i.Resource.Module && t.Module != i.Resource.Module.Static() {
		return false
	}
	return t.Key == nil || *t.Key == i.Key
}

func within(outer, m Module) bool {
	want, have := outer.Steps(), m.Steps()
	if len(want) > len(have) {
		return false
	}
	for n, w := range want {
		if w.Name != have[n].Name || (!w.Key.IsNone() && w.Key != have[n].Key) {
			return false
		}
	}
	return true
}

// Package schema says what a block may contain, once, so that decoding, validation, documentation, plan
// rendering and the cost of a change all come from the same place.
//
// A Block is pure data. lang/eval turns it into an hcldec.Spec (Block.DecoderSpec), stages read the costs, the
// command line prints it as JSON. Nothing in here does I/O.
package schema

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"
)

// Cost says what a change of an attribute costs the running testbed, from nothing to everything. Costs are
// ordered: the cost of a change of several attributes is the greatest of theirs.
type Cost uint8

const (
	Live           Cost = iota // no disturbance
	PortReset                  // a port or the PMD threads are rebuilt: a short burst of loss, statistics restart
	ServiceRestart             // a daemon or process is restarted
	GuestRestart               // a VM or container is restarted
	HostReboot                 // the host is rebooted
	Replace                    // the object is destroyed and made anew
)

var costNames = [...]string{"live", "port_reset", "service_restart", "guest_restart", "host_reboot", "replace"}

func (c Cost) String() string {
	if int(c) < len(costNames) {
		return costNames[c]
	}
	return fmt.Sprintf("cost(%d)", uint8(c))
}

// ParseCost reads the name of a cost, as -max-cost takes it.
func ParseCost(s string) (Cost, error) {
	for i, n := range costNames {
		if n == s {
			return Cost(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a cost; want %s", s, strings.Join(costNames[:], ", "))
}

// MarshalText writes the cost's name.
func (c Cost) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a cost's name.
func (c *Cost) UnmarshalText(b []byte) (err error) { *c, err = ParseCost(string(b)); return err }

// Attribute is one argument or exported value of a block.
//
// Required: must be set. Optional: may be. Computed: the provider gives a value when the configuration does
// not (alone: read-only). Default is used where an optional attribute is null; cty.NilVal for none.
type Attribute struct {
	Type        cty.Type
	Description string // one or two sentences with unit, range and source of any number
	Required    bool
	Optional    bool
	Computed    bool
	Sensitive   bool
	Default     cty.Value
	Cost        Cost // what a change costs; Replace: cannot be changed in place
	// Volatile marks a computed attribute that an update may change: it is shown as known after apply whenever
	// the object changes. Other computed attributes keep their value on update.
	Volatile bool
	// Canonical maps a known, non-null value to the form in which two spellings of the same thing are equal
	// (MAC case, cpu lists, sizes). nil: values are compared as they are. An error is a validation error.
	Canonical func(cty.Value) (cty.Value, error)
	// Validate checks a known, non-null value. Its error text follows "Invalid value for NAME: ".
	Validate func(cty.Value) error
	// Reference, when not "", makes the argument a static reference instead of a value: RefResource to an instance of a managed resource of the
	// same module, RefHost to a host block. Type is then string, and the value what is referred to: the instance's address, the host's
	// name. Where there is one host only, RefHost may be left out.
	Reference string
	// OneOf, when not empty, is the closed list of strings allowed.
	OneOf []string
	// Since says from which version of what it exists ("OVS 3.1"), Deprecated why not to use it.
	Since, Deprecated string
}

// What an argument may refer to.
const (
	RefResource = "resource"
	RefHost     = "host"
	// RefOtherHost is RefHost for an argument that means no host where it is left out.
	RefOtherHost = "other host"
)

// Nesting is how often a nested block may stand.
type Nesting uint8

const (
	Single Nesting = iota // at most one: an object or null
	List                  // any number: a list of objects
	Map                   // one label each: a map of objects
)

// NestedBlock is a block type inside a block.
type NestedBlock struct {
	Block
	Nesting  Nesting
	MinItems int // List and Single: 1 makes it required
	MaxItems int // 0: no limit
}

// Block is the content of a block.
type Block struct {
	Description string
	Attributes  map[string]*Attribute
	Blocks      map[string]*NestedBlock
}

// Resource describes a resource type or data source.
type Resource struct {
	Type        string
	Description string
	Example     string // a complete HCL block that validates
	Version     int    // of the stored attributes
	Setting     bool   // changed and put back, rather than made and deleted
	Hostless    bool   // lives in the state alone: takes no host argument
	Block       Block
	// After lists resource types on the same host that are dealt with before this one when both exist, even
	// without a reference between them. The graph names the edge "host order".
	After []string
	// LostOn lists what takes this resource's effect away: when an instance of Type on the same host changes with
	// at least Cost, this one is applied again in the same run.
	LostOn []Loss
	// Survives says that a reboot of the host leaves the effect as it is, because it is kept on disk. All others are applied again in the
	// run that reboots.
	Survives bool
}

// Loss is one entry of Resource.LostOn.
type Loss struct {
	Type string
	Cost Cost
	Why  string // "a restart of ovs-vswitchd loses OpenFlow flows"
	// Release says that the change cannot even be made while this one is there: it is deleted before the change and made anew after it. That
	// holds for those instances alone that depend on the changed one, by a reference or depends_on, directly or through others.
	Release bool
}

// Catalog is all that a configuration may use. It is filled by the providers and the bench stage.
type Catalog struct {
	Resources  map[string]*Resource
	Data       map[string]*Resource
	Generators map[string]*Generator
	Host       *Block
	Benchmark  *Block            // arguments and blocks of benchmark that every method shares
	Methods    map[string]*Block // one nested block name per method
}

// Generator describes a traffic generator type.
type Generator struct {
	Type        string
	Description string
	Example     string
	Hostless    bool
	Block       Block
}

// DecoderSpec is the hcldec specification of the block. The decoded value conforms to ImpliedType: unset
// attributes are null (defaults are filled in by ApplyDefaults), absent Single blocks are null objects, absent
// List blocks empty lists, absent Map blocks empty maps. Unknown attribute values stay unknown. References are left as expressions
// (customdecode.ExpressionType), for lang/eval to resolve.
func (b *Block) DecoderSpec() hcldec.Spec {
	spec := hcldec.ObjectSpec{}
	for name, a := range b.Attributes {
		if a.Computed && !a.Optional && !a.Required {
			spec[name] = &hcldec.LiteralSpec{Value: cty.NullVal(a.Type)}
			continue
		}
		if a.Reference != "" {
			spec[name] = &hcldec.AttrSpec{Name: name, Type: customdecode.ExpressionType, Required: a.Required}
			continue
		}
		spec[name] = &hcldec.AttrSpec{Name: name, Type: a.Type, Required: a.Required}
	}
	for name, n := range b.Blocks {
		inner := n.DecoderSpec()
		switch n.Nesting {
		case Single:
			spec[name] = &hcldec.BlockSpec{TypeName: name, Nested: inner, Required: n.MinItems > 0}
		case List:
			spec[name] = &hcldec.BlockListSpec{TypeName: name, Nested: inner, MinItems: n.MinItems, MaxItems: n.MaxItems}
		case Map:
			spec[name] = &hcldec.BlockMapSpec{TypeName: name, LabelNames: []string{"name"}, Nested: inner}
		}
	}
	return spec
}

// ImpliedType is the object type of the block's value.
func (b *Block) ImpliedType() cty.Type {
	t := make(map[string]cty.Type, len(b.Attributes)+len(b.Blocks))
	for name, a := range b.Attributes {
		t[name] = a.Type
	}
	for name, n := range b.Blocks {
		inner := n.ImpliedType()
		switch n.Nesting {
		case List:
			inner = cty.List(inner)
		case Map:
			inner = cty.Map(inner)
		}
		t[name] = inner
	}
	return cty.Object(t)
}

// Any says whether something holds for an attribute of the block or of one within it.
func (b *Block) Any(holds func(*Attribute) bool) bool {
	for _, a := range b.Attributes {
		if holds(a) {
			return true
		}
	}
	for _, n := range b.Blocks {
		if n.Block.Any(holds) {
			return true
		}
	}
	return false
}

package ovs

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// form says how an option's value is written in the database.
type form uint8

const (
	textForm   form = iota
	boolForm        // true / false
	intForm         // decimal
	listForm        // list of numbers: "1024,0"
	cpuForm         // list of CPUs in the configuration, hexadecimal mask in the database
	coreMap         // map of numbers to numbers: "0:1,1:15"
	stringList      // list of strings: "a,b"
	macForm         // in small letters with colons
)

// option is one key of other_config or options as an attribute with a type.
type option struct {
	attr, key string
	form      form
	cost      schema.Cost
	min, max  int64 // of intForm and of each number of a listForm; both 0: not bounded
	oneOf     []string
	since     string
	desc      string
	on        []string // types of interface that it applies to; nil: all
}

func (o option) ctyType() cty.Type {
	switch o.form {
	case boolForm:
		return cty.Bool
	case intForm:
		return cty.Number
	case listForm:
		return cty.List(cty.Number)
	case coreMap:
		return cty.Map(cty.Number)
	case stringList:
		return cty.List(cty.String)
	}
	return cty.String
}

// attribute is the option as a schema says it.
func (o option) attribute() *schema.Attribute {
	a := &schema.Attribute{
		Type: o.ctyType(), Optional: true, Cost: o.cost, Since: o.since, OneOf: o.oneOf,
		Description: o.desc + " Database key: " + o.key + ". Unset: left as it is found.",
		Validate:    o.validate,
	}
	switch o.form {
	case cpuForm:
		a.Canonical = canonicalCPUs
	case macForm:
		a.Canonical = schema.MAC
	}
	return a
}

func canonicalCPUs(v cty.Value) (cty.Value, error) {
	cpus, err := parseCPUs(v.AsString())
	if err != nil {
		return v, err
	}
	return cty.StringVal(formatCPUs(cpus)), nil
}

func (o option) validate(v cty.Value) error {
	if !v.IsWhollyKnown() {
		return nil
	}
	check := func(n cty.Value) error {
		if n.IsNull() {
			return fmt.Errorf("an element is null")
		}
		i, acc := n.AsBigFloat().Int64()
		if acc != big.Exact {
			return fmt.Errorf("%s is not a whole number", n.AsBigFloat().Text('g', 10))
		}
		if (o.min != 0 || o.max != 0) && (i < o.min || i > o.max) {
			return fmt.Errorf("%d is not between %d and %d", i, o.min, o.max)
		}
		return nil
	}
	switch o.form {
	case intForm:
		return check(v)
	case listForm:
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			if err := check(e); err != nil {
				return err
			}
		}
	case coreMap:
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if n, err := strconv.Atoi(k.AsString()); err != nil || n < 0 {
				return fmt.Errorf("key %q is not the number of a queue", k.AsString())
			}
			if err := check(e); err != nil {
				return err
			}
		}
	case cpuForm:
		_, err := parseCPUs(v.AsString())
		return err
	}
	return nil
}

// encode writes a known, non-null value as the database has it.
func (o option) encode(v cty.Value) string {
	num := func(n cty.Value) string { return n.AsBigFloat().Text('f', 0) }
	switch o.form {
	case boolForm:
		return strconv.FormatBool(v.True())
	case intForm:
		return num(v)
	case listForm, stringList:
		var parts []string
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			if o.form == listForm {
				parts = append(parts, num(e))
			} else {
				parts = append(parts, e.AsString())
			}
		}
		return strings.Join(parts, ",")
	case coreMap:
		m := v.AsValueMap()
		keys := make([]int, 0, len(m))
		for k := range m {
			n, _ := strconv.Atoi(k)
			keys = append(keys, n)
		}
		slices.Sort(keys)
		var parts []string
		for _, k := range keys {
			parts = append(parts, strconv.Itoa(k)+":"+num(m[strconv.Itoa(k)]))
		}
		return strings.Join(parts, ",")
	case cpuForm:
		cpus, _ := parseCPUs(v.AsString())
		return cpuMask(cpus)
	case macForm:
		mac, _ := schema.MAC(v)
		return mac.AsString()
	}
	return v.AsString()
}

// decode reads what the database has. Where that means the same as prior, prior is returned: the user's spelling stays. A text that
// the attribute's type cannot hold is shown as null, which differs from every setting.
func (o option) decode(s string, prior cty.Value) cty.Value {
	if !prior.IsNull() && prior.IsKnown() && o.same(s, prior) {
		return prior
	}
	null := cty.NullVal(o.ctyType())
	switch o.form {
	case boolForm:
		switch s {
		case "true", "false":
			return cty.BoolVal(s == "true")
		}
		return null
	case intForm:
		if n, err := strconv.ParseInt(s, 0, 64); err == nil {
			return cty.NumberIntVal(n)
		}
		return null
	case listForm:
		var list []cty.Value
		for part := range strings.SplitSeq(s, ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
			if err != nil {
				return null
			}
			list = append(list, cty.NumberIntVal(n))
		}
		return cty.ListVal(list)
	case stringList:
		var list []cty.Value
		for part := range strings.SplitSeq(s, ",") {
			list = append(list, cty.StringVal(strings.TrimSpace(part)))
		}
		return cty.ListVal(list)
	case coreMap:
		m := map[string]cty.Value{}
		for part := range strings.SplitSeq(s, ",") {
			k, v, _ := strings.Cut(part, ":")
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			if err != nil {
				return null
			}
			m[strings.TrimSpace(k)] = cty.NumberIntVal(n)
		}
		return cty.MapVal(m)
	case cpuForm:
		cpus, err := maskCPUs(s)
		if err != nil || len(cpus) == 0 {
			return null
		}
		return cty.StringVal(formatCPUs(cpus))
	}
	return cty.StringVal(s)
}

func (o option) same(s string, v cty.Value) bool {
	if o.form == cpuForm {
		have, err := maskCPUs(s)
		want, err2 := parseCPUs(v.AsString())
		return err == nil && err2 == nil && slices.Equal(have, want)
	}
	return s == o.encode(v) || o.form == macForm && strings.EqualFold(s, o.encode(v))
}

// keysOf encodes all set attributes of obj into keys of the database. Unknown ones are left out.
func keysOf(obj cty.Value, opts []option, into map[string]string) {
	if obj.IsNull() || !obj.IsKnown() {
		return
	}
	for _, o := range opts {
		if v := obj.GetAttr(o.attr); !v.IsNull() && v.IsWhollyKnown() {
			into[o.key] = o.encode(v)
		}
	}
}

// readInto decodes the attributes that prior sets; what it leaves open stays null, since that is not managed.
func readInto(attrs map[string]cty.Value, prior cty.Value, opts []option, have map[string]string) {
	for _, o := range opts {
		p := prior.GetAttr(o.attr)
		if p.IsNull() {
			attrs[o.attr] = p
			continue
		}
		if s, ok := have[o.key]; ok {
			attrs[o.attr] = o.decode(s, p)
		} else {
			attrs[o.attr] = cty.NullVal(o.ctyType())
		}
	}
}

// stringMap reads a map of strings; null and unknown are empty.
func stringMap(v cty.Value) map[string]string {
	out := map[string]string{}
	if v.IsNull() || !v.IsWhollyKnown() {
		return out
	}
	for k, e := range v.AsValueMap() {
		if !e.IsNull() {
			out[k] = e.AsString()
		}
	}
	return out
}

// readMap is what the world has of the keys in prior.
func readMap(prior cty.Value, have map[string]string) cty.Value {
	if prior.IsNull() {
		return prior
	}
	m := map[string]cty.Value{}
	for k := range stringMap(prior) {
		if v, ok := have[k]; ok {
			m[k] = cty.StringVal(v)
		}
	}
	if len(m) == 0 {
		return cty.MapValEmpty(cty.String)
	}
	return cty.MapVal(m)
}

package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// fields reads a block's value against its schema and keeps the first error. Null is the schema's default; a value that the schema's check
// refuses is an error.
type fields struct {
	v      cty.Value
	block  *schema.Block
	hidden map[string]bool // attributes and blocks that hold something sensitive: their values stand in no result
	err    error
}

// open checks the value and unmarks it. A missing block is one with nothing set; unknown is an error: a benchmark runs when everything is
// applied.
func (f *fields) open(what string) error {
	if f.v == cty.NilVal || f.v.IsNull() {
		f.v = cty.EmptyObjectVal
	}
	var marks []cty.PathValueMarks
	f.v, marks = f.v.UnmarkDeepWithPaths()
	f.hidden = map[string]bool{}
	for _, m := range marks {
		if len(m.Path) == 0 {
			f.hide()
		} else if step, ok := m.Path[0].(cty.GetAttrStep); ok {
			f.hidden[step.Name] = true
		}
	}
	if !f.v.IsWhollyKnown() {
		return fmt.Errorf("%s: a value is still unknown", what)
	}
	return nil
}

// hide keeps all of the block out of results.
func (f *fields) hide() {
	for name := range f.v.Type().AttributeTypes() {
		f.hidden[name] = true
	}
}

// fail keeps the first error.
func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// get is the attribute's value, its default, or null.
func (f *fields) get(name string) cty.Value {
	a := f.block.Attributes[name]
	v := cty.NullVal(a.Type)
	if f.v.Type().HasAttribute(name) {
		v = f.v.GetAttr(name)
	}
	if v.IsNull() && a.Default != cty.NilVal {
		v = a.Default
	}
	if v.IsNull() && a.Required {
		f.fail(fmt.Errorf("%s is missing", name))
	}
	if !v.IsNull() && a.Validate != nil && f.err == nil {
		if err := a.Validate(v); err != nil {
			f.fail(fmt.Errorf("%s: %w", name, err))
		}
	}
	return v
}

// block1 is a nested block's value, NilVal or null when it is not there.
func (f *fields) block1(name string) cty.Value {
	if !f.v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return f.v.GetAttr(name)
}

// inner reads a nested block that stands once at most; one that is not there has its defaults.
func (f *fields) inner(name string) *fields {
	in := &fields{v: f.block1(name), block: &f.block.Blocks[name].Block}
	f.fail(in.open(name))
	if f.hidden[name] {
		in.hide()
	}
	return in
}

func (f *fields) str(name string) string {
	if v := f.get(name); !v.IsNull() {
		return v.AsString()
	}
	return ""
}

func (f *fields) flag(name string) bool { v := f.get(name); return !v.IsNull() && v.True() }

func (f *fields) isSet(name string) bool { return !f.get(name).IsNull() }

func (f *fields) num(name string) float64 {
	v := f.get(name)
	if v.IsNull() {
		return 0
	}
	n, _ := v.AsBigFloat().Float64()
	return n
}

// share is a percentage as a ratio. Dividing keeps short decimals what they are: 0.5 % is 0.005.
func (f *fields) share(name string) float64 { return f.num(name) / 100 }

// goal is a percentage as a ratio, nil when it is not set.
func (f *fields) goal(name string) *float64 {
	if !f.isSet(name) {
		return nil
	}
	r := f.share(name)
	return &r
}

// ints is nil when the list is not set.
func (f *fields) ints(name string) []int {
	v := f.get(name)
	if v.IsNull() {
		return nil
	}
	var out []int
	for _, e := range v.AsValueSlice() {
		if e.IsNull() {
			continue // an error already
		}
		n, _ := e.AsBigFloat().Int64()
		out = append(out, int(n))
	}
	return out
}

// duration is 0 when it is not set.
func (f *fields) duration(name string) time.Duration {
	s := f.str(name)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		f.fail(fmt.Errorf("%s: %w", name, err))
	}
	return d
}

// load is frames per second; 0 for max, and when it is not set.
func (f *fields) load(name string) float64 {
	s := f.str(name)
	if s == "" {
		return 0
	}
	v, err := parseLoad(s)
	if err != nil {
		f.fail(fmt.Errorf("%s: %w", name, err))
	}
	return v
}

// rows lists what is set, defaults included, in words: "search.trial", "60s". What is sensitive is not shown.
func (f *fields) rows(prefix string) [][2]string {
	var out [][2]string
	for _, name := range sortedKeys(f.block.Attributes) {
		v := f.get(name)
		switch {
		case v.IsNull():
		case f.hidden[name] || f.block.Attributes[name].Sensitive:
			out = append(out, [2]string{prefix + name, hiddenText})
		default:
			out = append(out, [2]string{prefix + name, words(v)})
		}
	}
	for _, name := range sortedKeys(f.block.Blocks) {
		n := f.block.Blocks[name]
		v := f.block1(name)
		switch {
		case n.Nesting == schema.Single:
			if in := f.inner(name); v != cty.NilVal && !v.IsNull() || n.MinItems == 0 && len(n.Blocks) == 0 && !required(&n.Block) {
				out = append(out, in.rows(prefix+name+".")...)
			}
		case v == cty.NilVal || v.IsNull():
		default:
			for it := v.ElementIterator(); it.Next(); {
				key, e := it.Element()
				in := &fields{v: e, block: &n.Block}
				f.fail(in.open(name))
				if f.hidden[name] {
					in.hide()
				}
				out = append(out, in.rows(prefix+name+"."+scalar(key)+".")...)
			}
		}
	}
	return out
}

const hiddenText = "(sensitive)"

// words writes a value for people: a list joined by commas.
func words(v cty.Value) string {
	switch ty := v.Type(); {
	case v.IsNull():
		return ""
	case ty == cty.Bool:
		return map[bool]string{true: "yes", false: "no"}[v.True()]
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		var parts []string
		for _, e := range v.AsValueSlice() {
			parts = append(parts, words(e))
		}
		return strings.Join(parts, ", ")
	}
	return scalar(v)
}

// required says whether a block means nothing when it is left out.
func required(b *schema.Block) bool {
	return b.Any(func(a *schema.Attribute) bool { return a.Required })
}

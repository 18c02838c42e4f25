package bench

import (
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
)

// settings are a benchmark block's arguments, decoded.
type settings struct {
	sizes, flows    []int
	traffic         providers.Traffic // without size and flows
	lineRate        float64           // bits/s; 0: not given
	warmUp, settle  time.Duration
	drain           time.Duration
	repeat, retries int
	tolerance       float64 // of the offered load: 0.05
	observe         bool
	maxLoss         *float64 // percent
	load            float64  // frames/s; 0: maximum
	duration        time.Duration
}

// decode reads a benchmark's values. Marks are ignored, null is the schema's default; unknown is an error: a benchmark runs when
// everything is applied.
func decode(b *eval.Benchmark) (settings, error) {
	var s settings
	shared := Schema()
	top := fields{v: b.Config, block: shared}
	if err := top.open("benchmark"); err != nil {
		return s, err
	}
	traffic := fields{v: top.block1("traffic"), block: &shared.Blocks["traffic"].Block}
	if err := traffic.open("traffic"); err != nil {
		return s, err
	}
	m, ok := Methods()[b.Method]
	if !ok {
		return s, fmt.Errorf("there is no method %q; a benchmark has one method block, such as continuous", b.Method)
	}
	method := fields{v: b.MethodCfg, block: m}
	if err := method.open(b.Method); err != nil {
		return s, err
	}
	s.sizes, s.flows = traffic.ints("frame_sizes"), traffic.ints("flows")
	s.traffic = providers.Traffic{Headers: traffic.str("headers"), Bidirectional: traffic.flag("bidirectional"), SrcMAC: traffic.str("src_mac"), DstMAC: traffic.str("dst_mac")}
	if r := traffic.str("line_rate"); r != "" {
		s.lineRate, traffic.err = first(parseRate, r, traffic.err)
	}
	s.warmUp, s.settle, s.drain = top.duration("warm_up"), top.duration("settle"), top.duration("drain")
	s.repeat, s.retries = int(top.num("repeat")), int(top.num("invalid_retries"))
	s.tolerance, s.observe = top.num("rate_tolerance")/100, top.flag("observe")
	s.duration = method.duration("duration")
	s.load, method.err = first(parseLoad, method.str("load"), method.err)
	if v := method.get("max_loss"); !v.IsNull() {
		f := method.num("max_loss")
		s.maxLoss = &f
	}
	for _, f := range []fields{top, traffic, method} {
		if f.err != nil {
			return s, f.err
		}
	}
	return s, nil
}

// fields reads a block's value against its schema and keeps the first error.
type fields struct {
	v     cty.Value
	block *schema.Block
	err   error
}

// open checks the value and unmarks it. A missing block is one with nothing set.
func (f *fields) open(what string) error {
	if f.v == cty.NilVal || f.v.IsNull() {
		f.v = cty.EmptyObjectVal
	}
	f.v, _ = f.v.UnmarkDeep()
	if !f.v.IsWhollyKnown() {
		return fmt.Errorf("%s: a value is still unknown", what)
	}
	return nil
}

// get is the attribute's value, its default, or null. A value that the schema's check refuses is an error.
func (f *fields) get(name string) cty.Value {
	a := f.block.Attributes[name]
	v := cty.NullVal(a.Type)
	if f.v.Type().HasAttribute(name) {
		v = f.v.GetAttr(name)
	}
	if v.IsNull() && a.Default != cty.NilVal {
		v = a.Default
	}
	if !v.IsNull() && a.Validate != nil && f.err == nil {
		if err := a.Validate(v); err != nil {
			f.err = fmt.Errorf("%s: %w", name, err)
		}
	}
	return v
}

func (f *fields) block1(name string) cty.Value {
	if !f.v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return f.v.GetAttr(name)
}

func (f *fields) str(name string) string {
	if v := f.get(name); !v.IsNull() {
		return v.AsString()
	}
	return ""
}

func (f *fields) flag(name string) bool { v := f.get(name); return !v.IsNull() && v.True() }

func (f *fields) num(name string) float64 {
	v := f.get(name)
	if v.IsNull() {
		return 0
	}
	n, _ := v.AsBigFloat().Float64()
	return n
}

func (f *fields) ints(name string) []int {
	var out []int
	for _, e := range f.get(name).AsValueSlice() {
		if e.IsNull() {
			continue // an error already
		}
		n, _ := e.AsBigFloat().Int64()
		out = append(out, int(n))
	}
	return out
}

func (f *fields) duration(name string) time.Duration {
	d, err := time.ParseDuration(f.str(name))
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", name, err)
	}
	return d
}

func first(parse func(string) (float64, error), s string, before error) (float64, error) {
	f, err := parse(s)
	if before != nil {
		err = before
	}
	return f, err
}

package funcs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/macaddr"
)

type testMark string

const secret = testMark("secret")

func evaluate(t *testing.T, src string) (cty.Value, hcl.Diagnostics) {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "test", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", src, diags)
	}
	return expr.Value(&hcl.EvalContext{
		Functions: Table("testdata/module", secret),
		Variables: map[string]cty.Value{
			"unknown":      cty.UnknownVal(cty.String),
			"unknown_num":  cty.UnknownVal(cty.Number),
			"unknown_any":  cty.DynamicVal,
			"unknown_bool": cty.UnknownVal(cty.Bool),
			"half":         cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.UnknownVal(cty.Number)}),
			"secret":       cty.StringVal("1-3").Mark(secret),
		},
	})
}

func TestDescriptions(t *testing.T) {
	table := Table(".", secret)
	if len(table) < 90 {
		t.Errorf("the table has %d functions", len(table))
	}
	for name, f := range table {
		if f.Description() == "" {
			t.Errorf("function %s has no description", name)
		}
	}
	for _, impure := range []string{"timestamp", "plantimestamp", "uuid", "bcrypt", "pathexpand", "random"} {
		if _, ok := table[impure]; ok {
			t.Errorf("function %s would make a plan unrepeatable", impure)
		}
	}
}

// Every function stands in at least one row.
func TestValues(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range valueTests {
		for name := range Table(".", secret) {
			if regexp.MustCompile(`\b` + name + `\(`).MatchString(tt.expr) {
				seen[name] = true
			}
		}
		got, diags := evaluate(t, tt.expr)
		if diags.HasErrors() {
			t.Errorf("%s: %v", tt.expr, diags)
			continue
		}
		want, _ := evaluate(t, tt.want)
		if got.IsMarked() || !want.Type().Equals(got.Type()) && !got.Type().IsPrimitiveType() {
			// the expected text gives a tuple or object where the function gives a list, set or map
			got = asLiteral(got)
			want = asLiteral(want)
		}
		if !got.RawEquals(want) {
			t.Errorf("%s = %#v, want %#v", tt.expr, got, want)
		}
	}
	for name := range Table(".", secret) {
		if !seen[name] {
			t.Errorf("function %s has no test", name)
		}
	}
}

// asLiteral turns collections into the tuples and objects that literals give.
func asLiteral(v cty.Value) cty.Value {
	if v.IsNull() || !v.IsKnown() || v.IsMarked() {
		return v
	}
	switch ty := v.Type(); {
	case ty.IsListType() || ty.IsSetType() || ty.IsTupleType():
		var out []cty.Value
		for _, e := range v.AsValueSlice() {
			out = append(out, asLiteral(e))
		}
		return cty.TupleVal(out)
	case ty.IsMapType() || ty.IsObjectType():
		out := map[string]cty.Value{}
		for k, e := range v.AsValueMap() {
			out[k] = asLiteral(e)
		}
		return cty.ObjectVal(out)
	}
	return v
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{`cpuset("3-1")`, `write 1-3`},
		{`cpuset({})`, `CPUs are a list such as`},
		{`cpuset([1.5])`, `CPUs are a list such as`},
		{`cpuset([-1])`, `they go from 0 to 8191`},
		{`cpumask("x")`, `"x" is not a CPU number`},
		{`pci("1:20.0")`, `"1:20.0" is not a PCI address like`},
		{`pci("1:00.8")`, `is not a PCI address`},
		{`pci("eth0")`, `is not a PCI address`},
		{`mac("02:00")`, `"02:00" is not a MAC address`},
		{`mac("02:00:00:00:00:0g")`, `is not a MAC address`},
		{`mac("ff:ff:ff:ff:ff:ff", 1)`, `there is no MAC address 1 after ff:ff:ff:ff:ff:ff`},
		{`mac("02:00:00:00:00:00", 1.5)`, `a whole number is required`},
		{`mac("02:00:00:00:00:00", 1, 2)`, `at most one offset`},
		{`linerate("10G", 60)`, `64 to 65535 bytes, counted with the FCS`},
		{`linerate("fast", 64)`, `"fast" is not a speed`},
		{`linerate("-1", 64)`, `"-1" is not a speed`},
		{`linerate("G", 64)`, `"G" is not a speed`},
		{`linerate(0, 64)`, `"0" is not a speed`},
		{`cidrhost("192.0.2.0/30", 4)`, `has 4 addresses, so there is no number 4`},
		{`cidrhost("192.0.2.0", 4)`, `is not a prefix like`},
		{`cidrsubnet("192.0.2.0/24", 9, 0)`, `it has 8 bits left`},
		{`cidrsubnet("192.0.2.0/24", 2, 4)`, `from 0 to 3, so there is no number 4`},
		{`cidrsubnet("192.0.2.0/24", -1, 0)`, `cannot be made -1 bits longer`},
		{`cidrsubnets("192.0.2.0/24", 1, 1, 1)`, `has no room for another /25`},
		{`cidrnetmask("2001:db8::/32")`, `IPv6 has no netmasks`},
		{`one([1, 2])`, `at most one element is required`},
		{`one(toset([1, 2]))`, `more than one element`},
		{`sum([])`, `at least one number is required`},
		{`sum(["a"])`, `every element must be a number`},
		{`coalesce("", null)`, `every argument is null or an empty string`},
		{`lookup({ a = 1 }, "b")`, `no key "b", and there is no default`},
		{`index(["a"], "b")`, `no element of the list equals it`},
		{`length(5)`, `a list, set, map, tuple, object or string is required`},
		{`file("missing.txt")`, `there is no file testdata/module/missing.txt`},
		{`file("binary.bin")`, `is not a text in UTF-8`},
		{`fileexists("sub")`, `is a folder`},
		{`fileset(".", "[")`, `is not a pattern`},
		{`templatefile("greet.tmpl", {})`, `There is no variable named "name"`},
		{`templatefile("greet.tmpl", [])`, `vars must be an object or map`},
		{`templatefile("loop.tmpl", {})`, `There is no function named "templatefile"`},
		{`templatestring("$${", {})`, `template`},
		{`base64decode("!")`, `not base64`},
		{`base64decode("//4=")`, `not a text in UTF-8`},
		{`replace("a", "/(/", "b")`, `missing closing )`},
		{`timecmp("now", "2026-01-01T00:00:00Z")`, `not a timestamp`},
		{`matchkeys(["a"], ["x", "y"], ["x"])`, `equally long`},
	} {
		v, diags := evaluate(t, tt.expr)
		if !diags.HasErrors() {
			t.Errorf("%s = %#v, want an error that says %q", tt.expr, v, tt.want)
		} else if !strings.Contains(diags.Error(), tt.want) {
			t.Errorf("%s: error is %q, want one that says %q", tt.expr, diags, tt.want)
		}
	}
}

func TestUnknownsAndMarks(t *testing.T) {
	for _, tt := range []struct {
		expr string
		want cty.Value
	}{
		{`cpuset(half)`, cty.UnknownVal(cty.List(cty.Number))},
		{`cpulist(unknown_any)`, cty.UnknownVal(cty.String)},
		{`cpumask(secret)`, cty.StringVal("0xe").Mark(secret)},
		{`linerate("10G", unknown_num)`, cty.UnknownVal(cty.Number)},
		{`alltrue([true, unknown_bool])`, cty.UnknownVal(cty.Bool)},
		{`alltrue([false, unknown_bool])`, cty.False},
		{`anytrue([true, unknown_bool])`, cty.True},
		{`anytrue([false, unknown_bool])`, cty.UnknownVal(cty.Bool)},
		{`sum(half)`, cty.UnknownVal(cty.Number)},
		{`length(half)`, cty.NumberIntVal(2)},
		{`length(unknown_any)`, cty.UnknownVal(cty.Number)},
		{`sensitive("x")`, cty.StringVal("x").Mark(secret)},
		{`nonsensitive(secret)`, cty.StringVal("1-3")},
		{`issensitive(secret)`, cty.True},
		{`issensitive("x")`, cty.False},
		{`issensitive(unknown)`, cty.UnknownVal(cty.Bool)},
		{`sensitive(unknown)`, cty.UnknownVal(cty.String).Mark(secret)},
		{`upper(secret)`, cty.StringVal("1-3").Mark(secret)},
		{`templatestring("$${v}", { v = secret })`, cty.StringVal("1-3").Mark(secret)},
		{`file(unknown)`, cty.UnknownVal(cty.String)},
		{`templatefile(unknown, {})`, cty.DynamicVal},
		{`coalesce(unknown, "x")`, cty.UnknownVal(cty.String)},
	} {
		got, diags := evaluate(t, tt.expr)
		if diags.HasErrors() {
			t.Errorf("%s: %v", tt.expr, diags)
			continue
		}
		// Whether an unknown is known not to be null is not what this is about.
		if u, marks := got.Unmark(); !u.IsKnown() {
			got = cty.UnknownVal(u.Type()).WithMarks(marks)
		}
		if !got.RawEquals(tt.want) {
			t.Errorf("%s = %#v, want %#v", tt.expr, got, tt.want)
		}
	}
}

// The frame rates of RFC 2544 appendix B for 10 Mbit/s, and of faster links by the same arithmetic.
func TestLineRate(t *testing.T) {
	for _, tt := range []struct {
		speed string
		rates map[int]int64
	}{
		{"10M", map[int]int64{64: 14880, 128: 8445, 256: 4528, 512: 2349, 768: 1586, 1024: 1197, 1280: 961, 1518: 812}},
		{"1G", map[int]int64{64: 1488095, 128: 844594, 256: 452898, 512: 234962, 1024: 119731, 1280: 96153, 1518: 81274, 9000: 13858}},
		{"10G", map[int]int64{64: 14880952, 128: 8445945, 256: 4528985, 512: 2349624, 1024: 1197318, 1280: 961538, 1518: 812743, 9000: 138580}},
		{"25000000000", map[int]int64{64: 37202380, 1518: 2031859, 9000: 346452}},
		{"40 G", map[int]int64{64: 59523809, 1024: 4789272}},
		{"100G", map[int]int64{64: 148809523, 128: 84459459, 1518: 8127438, 9000: 1385809}},
		{"0.4T", map[int]int64{64: 595238095, 1280: 38461538, 1518: 32509752, 9000: 5543237}},
		{"2.5G", map[int]int64{64: 3720238}},
	} {
		for size, want := range tt.rates {
			got, err := lineRateFunc().Call([]cty.Value{cty.StringVal(tt.speed), cty.NumberIntVal(int64(size))})
			if err != nil || !got.RawEquals(cty.NumberIntVal(want)) {
				t.Errorf("linerate(%q, %d) = %#v, %v; want %d", tt.speed, size, got, err, want)
			}
		}
	}
}

func FuzzTestbed(f *testing.F) {
	for _, s := range []string{"1-3,8", "0x10e", "1:00.0", "0000:01:00.0", "AA-BB-CC-00-00-01", "aabb.ccdd.eeff", "10G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		arg := cty.StringVal(in)
		for name, fn := range map[string]func(string) (string, error){"pci": pciAddress, "mac": func(s string) (string, error) {
			n, err := macaddr.Parse(s)
			return macaddr.String(n), err
		}} {
			once, err := fn(in)
			if err != nil {
				continue
			}
			if twice, err := fn(once); err != nil || twice != once {
				t.Errorf("%s(%q) = %q, and again %q, %v", name, in, once, twice, err)
			}
		}
		// These must not panic; what they answer is tested elsewhere.
		_, _ = cpuSetFunc().Call([]cty.Value{arg})
		_, _ = lineRateFunc().Call([]cty.Value{arg, cty.NumberIntVal(64)})
	})
}

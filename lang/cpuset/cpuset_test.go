package cpuset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string // printed again
		ids  []int
	}{
		{"", "", []int{}},
		{" \n", "", []int{}},
		{"0", "0", []int{0}},
		{"0-3,8", "0-3,8", []int{0, 1, 2, 3, 8}},
		{"8,0-3\n", "0-3,8", []int{0, 1, 2, 3, 8}},
		{"3,2,1,1", "1-3", []int{1, 2, 3}},
		{"5-5", "5", []int{5}},
		{"1, 2", "1-2", []int{1, 2}},
		{"0-7:2/4", "0-1,4-5", []int{0, 1, 4, 5}},
		{"1-10:1/3", "1,4,7,10", []int{1, 4, 7, 10}},
		{"8191", "8191", []int{8191}},
	} {
		s, err := Parse(tt.in)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.ids, s.List()); diff != "" {
			t.Errorf("Parse(%q): %s", tt.in, diff)
		}
		if s.String() != tt.want {
			t.Errorf("Parse(%q) prints %q, want %q", tt.in, s, tt.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for in, want := range map[string]string{
		",":               "an item between the commas is missing",
		"1,,2":            "an item between the commas is missing",
		"a":               `"a" is not a CPU number`,
		"-1":              "a number is missing",
		"1-":              "a number is missing",
		"3-1":             `range "3-1" goes down: write 1-3`,
		"1-2-3":           `"2-3" is not a CPU number`,
		"8192":            "they go from 0 to 8191",
		"0-4000000000000": "they go from 0 to 8191",
		"1:2/4":           "a stride needs a range before it",
		"0-7:2":           "must be USED/GROUP",
		"0-7:0/4":         "want 1 <= USED <= GROUP",
		"0-7:5/4":         "want 1 <= USED <= GROUP",
		"0-7:1/0":         "want 1 <= USED <= GROUP",
		"0-7:x/4":         `"x" is not a CPU number`,
		"0-7:1/y":         `"y" is not a CPU number`,
		"all":             `"all" is not a CPU number`,
		"0x6":             "0x6 is a mask, and this is a list: write 1-2",
		"1 2":             `"1 2" is not a CPU number`,
	} {
		if _, err := Parse(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) error is %v, want one that says %q", in, err, want)
		}
	}
}

func TestMask(t *testing.T) {
	for _, tt := range []struct{ in, list, mask string }{
		{"0x1f", "0-4", "0x1f"},
		{"0x10e", "1-3,8", "0x10e"},
		{"10E", "1-3,8", "0x10e"},
		{"0", "", "0x0"},
		{"0X0000", "", "0x0"},
		{"00000001,0000000f", "0-3,32", "0x10000000f"},
		{"1,f", "0-3,32", "0x10000000f"},
		{"8000000000000000000000000000000000\n", "135", "0x8000000000000000000000000000000000"},
	} {
		s, err := ParseMask(tt.in)
		if err != nil || s.String() != tt.list || s.Mask() != tt.mask {
			t.Errorf("ParseMask(%q) = %q, mask %q, %v; want %q and %q", tt.in, s, s.Mask(), err, tt.list, tt.mask)
		}
	}
	for in, want := range map[string]string{
		"":                                "it has no digits",
		"0x":                              "it has no digits",
		"0xg":                             `"g" is not a hexadecimal digit`,
		"1,,2":                            "groups between commas",
		"123456789,1":                     "groups between commas",
		"1" + strings.Repeat("0", 8192/4): "bit 8192 is set",
	} {
		if _, err := ParseMask(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseMask(%q) error is %v, want one that says %q", in, err, want)
		}
	}
}

func TestAlgebra(t *testing.T) {
	parse := func(s string) Set {
		out, err := ParseAny(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b := parse("0-3,8"), parse("0x106")
	for _, tt := range []struct {
		name string
		got  Set
		want string
	}{
		{"union", a.Union(b), "0-3,8"},
		{"union with more", a.Union(parse("9-10")), "0-3,8-10"},
		{"intersection", a.Intersect(b), "1-2,8"},
		{"difference", a.Minus(b), "0,3"},
		{"empty", b.Minus(a), ""},
	} {
		if tt.got.String() != tt.want {
			t.Errorf("%s is %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	if !b.SubsetOf(a) || a.SubsetOf(b) || !a.Contains(8) || a.Contains(4) || a.Len() != 5 || !(Set{}).IsEmpty() {
		t.Error("subset, contains or length is wrong")
	}
	if !a.Equal(parse("8,3,2,1,0")) || a.Equal(b) {
		t.Error("equality is wrong")
	}
	if _, err := Of(3, -1); err == nil {
		t.Error("Of took -1")
	}
	if s, err := Of(3, 1, 3); err != nil || s.String() != "1,3" {
		t.Errorf("Of = %q, %v", s, err)
	}
	var decoded Set
	if text, err := a.MarshalText(); err != nil || decoded.UnmarshalText(text) != nil || !decoded.Equal(a) {
		t.Errorf("text form does not come back: %q", decoded)
	}
}

// What parses must print to something that parses to the same, in both spellings.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0-3,8", "0-7:2/4", "0x1f", "00000001,0000000f", "", "1-", "8191"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, parse := range []func(string) (Set, error){Parse, ParseMask, ParseAny} {
			s, err := parse(in)
			if err != nil {
				continue
			}
			if again, err := Parse(s.String()); err != nil || !again.Equal(s) {
				t.Errorf("%q: list %q parses to %q, %v", in, s, again, err)
			}
			if again, err := ParseMask(s.Mask()); err != nil || !again.Equal(s) {
				t.Errorf("%q: mask %q parses to %q, %v", in, s.Mask(), again, err)
			}
		}
	})
}

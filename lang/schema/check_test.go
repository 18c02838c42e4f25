package schema

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestChecks(t *testing.T) {
	path := func(n int) cty.Value { return cty.StringVal("/" + strings.Repeat("x", n-1)) }
	for _, c := range []struct {
		name  string
		check func(cty.Value) error
		value cty.Value
		want  string
	}{
		{"least", Whole(2, 9), cty.NumberIntVal(2), ""},
		{"most", Whole(2, 9), cty.NumberIntVal(9), ""},
		{"below", Whole(2, 9), cty.NumberIntVal(1), "1 is not a whole number from 2 to 9"},
		{"above", Whole(2, 9), cty.NumberIntVal(10), "10 is not a whole number from 2 to 9"},
		{"a half", Whole(2, 9), cty.NumberFloatVal(2.5), "2.5 is not a whole number from 2 to 9"},
		{"beyond 64 bits", Whole(0, 1<<62), cty.MustParseNumberVal("1e30"), "1000000000000000000000000000000 is not a whole number from 0 to 4611686018427387904"},
		{"a power", PowerOfTwo(Whole(1, 64)), cty.NumberIntVal(64), ""},
		{"one", PowerOfTwo(Whole(1, 64)), cty.NumberIntVal(1), ""},
		{"no power", PowerOfTwo(Whole(1, 64)), cty.NumberIntVal(48), "48 is not a power of two"},
		{"not within", PowerOfTwo(Whole(1, 64)), cty.NumberIntVal(128), "128 is not a whole number from 1 to 64"},
		{"nothing", PowerOfTwo(Whole(0, 64)), cty.Zero, "0 is not a power of two"},
		{"a path", SocketPath, path(107), ""},
		{"a long path", SocketPath, path(108), `"/` + strings.Repeat("x", 107) + `" has 108 bytes: the path of a socket has at most 107`},
		{"a relative path", SocketPath, cty.StringVal("tg0"), `"tg0" is not an absolute path`},
	} {
		got := ""
		if err := c.check(c.value); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if v, err := CPUs(cty.StringVal("3,0-1,2")); err != nil || v.AsString() != "0-3" {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := CPUs(cty.StringVal("x")); err == nil {
		t.Error("x is a CPU list")
	}
}

func TestMAC(t *testing.T) {
	for given, want := range map[string]string{
		"02:00:00:00:0A:01": "02:00:00:00:0a:01", "52-54-00-00-00-01": "52:54:00:00:00:01", "5254.0000.00AB": "52:54:00:00:00:ab", "020000000001": "not a MAC address", " 02:00:00:00:00:01": "not a MAC address", "02:00:00:00:01": "not a MAC address", "": "not a MAC address", "02:00:00:00:00:0g": "not a MAC address",
		"0200:00:00:00:001": "not a MAC address", "0:20:0:0:0:1": "not a MAC address", "01:00:5e:00:00:01": "group's address", "ff:ff:ff:ff:ff:ff": "group's address", "00:00:00:00:00:00": "no station's address",
	} {
		v, err := MAC(cty.StringVal(given))
		switch {
		case err == nil && v.AsString() != want, err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%q: %#v, %v; want %s", given, v, err, want)
		}
	}
}

func TestAnyMAC(t *testing.T) {
	if v, err := AnyMAC(cty.StringVal("01:00:5E:00:00:01")); err != nil || v.AsString() != "01:00:5e:00:00:01" {
		t.Errorf("%#v, %v", v, err)
	}
	if _, err := AnyMAC(cty.StringVal("01:00:5e")); err == nil {
		t.Error("half an address is taken")
	}
}

func TestPCI(t *testing.T) {
	for given, want := range map[string]string{"0000:01:00.0": "0000:01:00.0", "AB:1F.7": "0000:ab:1f.7", "10000:e1:00.0": "10000:e1:00.0", "1:00.0": "", "0000:01:20.0": "", "0000:01:00.8": "", "000:01:00.0": "", "0000:01:00.0 ": "",
		"01:00.0": "0000:01:00.0", "0000:AF:1F.7": "0000:af:1f.7", "10000:01:00.0": "10000:01:00.0", "": "", "-1:00.0": "", "0000:01:00.0\n": "", "0000:01:00.0;id": "", "../0000:01:00.0": "", "0000:01:00.0\x00": ""} {
		v, err := PCI(cty.StringVal(given))
		if (err != nil) != (want == "") || err == nil && v.AsString() != want {
			t.Errorf("%q: %#v, %v; want %q", given, v, err, want)
		}
	}
}

package schema

import (
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/macaddr"
)

// Checks and spellings that several types share, for Attribute.Validate and Attribute.Canonical. They are called with known values that are not null, and
// their errors say what was given and what is wanted.

// Whole checks that a number is whole and from least to most.
func Whole(least, most int64) func(cty.Value) error {
	return func(v cty.Value) error {
		n, acc := v.AsBigFloat().Int64()
		if acc != 0 || n < least || n > most {
			return fmt.Errorf("%s is not a whole number from %d to %d", v.AsBigFloat().Text('f', -1), least, most)
		}
		return nil
	}
}

// PowerOfTwo checks that a number which holds within, such as Whole, is a power of two.
func PowerOfTwo(within func(cty.Value) error) func(cty.Value) error {
	return func(v cty.Value) error {
		if err := within(v); err != nil {
			return err
		}
		if n, _ := v.AsBigFloat().Uint64(); bits.OnesCount64(n) != 1 {
			return fmt.Errorf("%d is not a power of two", n)
		}
		return nil
	}
}

// SocketPath checks that a text can be the address of a unix socket: an absolute path of at most 107 bytes (unix(7)).
func SocketPath(v cty.Value) error {
	switch p := v.AsString(); {
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("%q is not an absolute path", p)
	case len(p) > 107:
		return fmt.Errorf("%q has %d bytes: the path of a socket has at most 107", p, len(p))
	}
	return nil
}

// MAC writes the address of a station in small letters with colons; it may be given with hyphens, or in three groups with dots. A group's address (the lowest bit of the first byte, IEEE 802)
// and zero are none.
func MAC(v cty.Value) (cty.Value, error) {
	mac, err := AnyMAC(v)
	switch {
	case err != nil:
		return v, err
	case strings.Contains("13579bdf", mac.AsString()[1:2]):
		return v, fmt.Errorf("%q is a group's address: the lowest bit of the first byte has to be 0", v.AsString())
	case strings.Trim(mac.AsString(), "0:") == "":
		return v, fmt.Errorf("%q is no station's address", v.AsString())
	}
	return mac, nil
}

// AnyMAC is MAC for a destination, which may be a group.
func AnyMAC(v cty.Value) (cty.Value, error) {
	s := v.AsString()
	n, err := macaddr.Parse(s)
	if err == nil && (!strings.ContainsAny(s, ":-.") || strings.TrimSpace(s) != s) {
		err = fmt.Errorf("%q is not a MAC address such as 02:00:00:00:00:01", s)
	}
	if err != nil {
		return v, err
	}
	return cty.StringVal(macaddr.String(n)), nil
}

// PCI writes a PCI address in full, in small letters: domain:bus:device.function. A domain has four digits, or more where a volume management device makes one; left out it is 0000.
func PCI(v cty.Value) (cty.Value, error) {
	m := regexp.MustCompile(`^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])$`).FindStringSubmatch(strings.ToLower(v.AsString()))
	if m == nil {
		return v, fmt.Errorf("%q is not a PCI address such as 0000:01:00.0", v.AsString())
	}
	if m[1] == "" {
		m[1] = "0000"
	}
	return cty.StringVal(m[1] + ":" + m[2]), nil
}

// CPUs writes a CPU list in its shortest form: two that name the same CPUs are equal.
func CPUs(v cty.Value) (cty.Value, error) {
	s, err := cpuset.Parse(v.AsString())
	if err != nil {
		return cty.NilVal, err
	}
	return cty.StringVal(s.String()), nil
}

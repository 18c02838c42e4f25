package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	longestLink  = 15 // IFNAMSIZ of netdevice(7) without the final NUL
)

// linkName holds for names of interfaces. The kernel takes more than that, and ip(8) and scripts of others do not.
func linkName(v cty.Value) error {
	s := v.AsString()
	switch {
	case s == "" || len(s) > longestLink || strings.Trim(s, alphanumeric+"_.-") != "" || strings.Trim(s, ".") == "":
		return fmt.Errorf("%q: want 1 to 15 letters, digits, _, . or -", s)
	case s[0] == '-':
		return fmt.Errorf("%q: a name that begins with - would be taken for an option", s)
	case slices.Contains([]string{"all", "default", "lo", "dev", "up", "down"}, s):
		return fmt.Errorf("%q means something else to the kernel or to ip(8)", s)
	}
	return nil
}

// spaceName holds for names of network namespaces: they are files below /run/netns.
func spaceName(v cty.Value) error {
	s := v.AsString()
	if s == "" || len(s) > 100 || strings.Trim(s, alphanumeric+"_.-") != "" || s[0] == '-' || strings.Trim(s, ".") == "" {
		return fmt.Errorf("%q: want 1 to 100 letters, digits, _, . or -, not beginning with -", s)
	}
	return nil
}

// account holds for the name or number of a user or group.
func account(v cty.Value) error {
	s := v.AsString()
	if s == "" || len(s) > 32 || strings.Trim(s, alphanumeric+"_.-") != "" || s[0] == '-' {
		return fmt.Errorf("%q is not the name or number of a user or group", s)
	}
	return nil
}

// parseAddress reads an address with its prefix length.
func parseAddress(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is not an IP address with a prefix length, such as 192.0.2.1/24", s)
	case p.Addr().IsUnspecified() || p.Addr().IsMulticast():
		return p, fmt.Errorf("%q is not an address that an interface can have", s)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%q: write it as an IPv4 address", s)
	}
	return p, nil
}

// parseAddresses reads a list; what is not known is left out.
func parseAddresses(v cty.Value) ([]netip.Prefix, error) {
	var out []netip.Prefix
	if v.IsNull() || !v.IsKnown() {
		return nil, nil
	}
	for _, e := range v.AsValueSlice() {
		if !e.IsKnown() {
			continue
		}
		if e.IsNull() {
			return nil, fmt.Errorf("an address is null")
		}
		p, err := parseAddress(e.AsString())
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, comparePrefixes)
	return out, nil
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// canonicalAddresses spells a list of addresses in order and each once.
func canonicalAddresses(v cty.Value) (cty.Value, error) {
	if !v.IsWhollyKnown() {
		return v, nil
	}
	all, err := parseAddresses(v)
	if err != nil {
		return v, err
	}
	return prefixList(all), nil
}

func prefixList(all []netip.Prefix) cty.Value {
	var out []cty.Value
	for _, p := range all {
		out = append(out, cty.StringVal(p.String()))
	}
	if out == nil {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(out)
}

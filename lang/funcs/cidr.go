package funcs

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

func prefixArg(v cty.Value) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(v.AsString())
	if err != nil {
		return p, function.NewArgErrorf(0, "%q is not a prefix like 192.0.2.0/24 or 2001:db8::/32", v.AsString())
	}
	return p.Masked(), nil
}

func intArg(args []cty.Value, i int) (int, error) {
	var n int
	if err := gocty.FromCtyValue(args[i], &n); err != nil {
		return 0, function.NewArgErrorf(i, "a whole number is required")
	}
	return n, nil
}

// offset is the address n after the prefix's first; n must be below 2^bits.
func offset(p netip.Prefix, n *big.Int) netip.Addr {
	raw := p.Addr().AsSlice()
	sum := new(big.Int).Add(new(big.Int).SetBytes(raw), n)
	sum.FillBytes(raw)
	a, _ := netip.AddrFromSlice(raw)
	return a
}

func cidrHostFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the address with the given number inside a prefix: cidrhost(\"192.0.2.0/24\", 5) is \"192.0.2.5\". Negative numbers count from the end.",
		Params:      []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "hostnum", Type: cty.Number}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.String)
			p, err := prefixArg(args[0])
			if err != nil {
				return unknown, err
			}
			n, accuracy := args[1].AsBigFloat().Int(nil)
			if accuracy != big.Exact {
				return unknown, function.NewArgErrorf(1, "a whole number is required")
			}
			size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
			at := n
			if n.Sign() < 0 {
				at = new(big.Int).Add(size, n)
			}
			if at.Sign() < 0 || at.Cmp(size) >= 0 {
				return unknown, function.NewArgErrorf(1, "prefix %s has %s addresses, so there is no number %s", p, size, n)
			}
			return cty.StringVal(offset(p, at).String()), nil
		},
	})
}

func cidrNetmaskFunc() function.Function {
	return stringFunc("Returns the netmask of an IPv4 prefix: cidrnetmask(\"192.0.2.0/24\") is \"255.255.255.0\".", "prefix", func(s string) (string, error) {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return "", fmt.Errorf("%q is not a prefix like 192.0.2.0/24", s)
		}
		if !p.Addr().Is4() {
			return "", errors.New("IPv6 has no netmasks")
		}
		mask := ^uint32(0) << (32 - p.Bits())
		return netip.AddrFrom4([4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}).String(), nil
	})
}

func cidrSubnetFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns subnet number netnum of a prefix that is made newbits longer: cidrsubnet(\"192.0.2.0/24\", 2, 3) is \"192.0.2.192/26\".",
		Params:      []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "newbits", Type: cty.Number}, {Name: "netnum", Type: cty.Number}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.String)
			p, err := prefixArg(args[0])
			if err != nil {
				return unknown, err
			}
			newbits, err := intArg(args, 1)
			if err != nil {
				return unknown, err
			}
			num, accuracy := args[2].AsBigFloat().Int(nil)
			if accuracy != big.Exact {
				return unknown, function.NewArgErrorf(2, "a whole number is required")
			}
			bits := p.Bits() + newbits
			if newbits < 0 || newbits > p.Addr().BitLen() || bits > p.Addr().BitLen() {
				return unknown, function.NewArgErrorf(1, "prefix %s cannot be made %d bits longer: it has %d bits left", p, newbits, p.Addr().BitLen()-p.Bits())
			}
			if num.Sign() < 0 || num.BitLen() > newbits {
				return unknown, function.NewArgErrorf(2, "%d new bits number subnets from 0 to %s, so there is no number %s",
					newbits, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(newbits)), big.NewInt(1)), num)
			}
			first := offset(p, new(big.Int).Lsh(num, uint(p.Addr().BitLen()-bits)))
			return cty.StringVal(netip.PrefixFrom(first, bits).String()), nil
		},
	})
}

func cidrSubnetsFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns subnets of a prefix one after the other, each made longer by the given number of bits.",
		Params:      []function.Parameter{{Name: "prefix", Type: cty.String}},
		VarParam:    &function.Parameter{Name: "newbits", Type: cty.Number},
		Type:        function.StaticReturnType(cty.List(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.List(cty.String))
			p, err := prefixArg(args[0])
			if err != nil {
				return unknown, err
			}
			if len(args) == 1 {
				return cty.ListValEmpty(cty.String), nil
			}
			next, end := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
			var out []cty.Value
			for i := 1; i < len(args); i++ {
				newbits, err := intArg(args, i)
				if err != nil {
					return unknown, err
				}
				if newbits < 1 || newbits > p.Addr().BitLen()-p.Bits() {
					return unknown, function.NewArgErrorf(i, "prefix %s cannot be made %d bits longer: it has %d bits left", p, newbits, p.Addr().BitLen()-p.Bits())
				}
				bits := p.Bits() + newbits
				size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-bits))
				// Subnets begin at multiples of their size.
				if rest := new(big.Int).Mod(next, size); rest.Sign() != 0 {
					next.Add(next, new(big.Int).Sub(size, rest))
				}
				if next.Cmp(end) >= 0 {
					return unknown, function.NewArgErrorf(i, "prefix %s has no room for another /%d", p, bits)
				}
				out = append(out, cty.StringVal(netip.PrefixFrom(offset(p, next), bits).String()))
				next.Add(next, size)
			}
			return cty.ListVal(out), nil
		},
	})
}

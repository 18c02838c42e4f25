package funcs

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"

	"plumb/lang/cpuset"
	"plumb/lang/macaddr"
)

// cpus is a parameter that takes a set of CPUs in any spelling.
var cpus = function.Parameter{Name: "cpus", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true}

// cpuFunc is a function of a set of CPUs. The result is unknown as soon as a part of the argument is.
func cpuFunc(description string, ret cty.Type, f func(cpuset.Set) cty.Value) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{cpus},
		Type:        function.StaticReturnType(ret),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(ret), nil
			}
			s, err := cpusOf(args[0])
			if err != nil {
				return cty.UnknownVal(ret), function.NewArgError(0, err)
			}
			return f(s), nil
		},
	})
}

// cpusOf reads a number, a string (list or 0x mask), or a list, set or tuple of numbers.
func cpusOf(v cty.Value) (cpuset.Set, error) {
	if v.Type() == cty.String {
		return cpuset.ParseAny(v.AsString())
	}
	elems := []cty.Value{v}
	if ty := v.Type(); ty.IsListType() || ty.IsSetType() || ty.IsTupleType() {
		elems = v.AsValueSlice()
	}
	ids := make([]int, len(elems))
	for i, e := range elems {
		n, err := convert.Convert(e, cty.Number)
		if err == nil {
			err = gocty.FromCtyValue(n, &ids[i])
		}
		if err != nil {
			return cpuset.Set{}, errors.New("CPUs are a list such as \"1-3,8\", a mask such as \"0x10e\", a whole number, or a list of them")
		}
	}
	return cpuset.Of(ids...)
}

func cpuSetFunc() function.Function {
	return cpuFunc("Returns the CPU numbers of a list (\"1-3,8\", \"0-7:2/4\") or mask (\"0x10e\") in ascending order: [1, 2, 3, 8].", cty.List(cty.Number), func(s cpuset.Set) cty.Value {
		if s.IsEmpty() {
			return cty.ListValEmpty(cty.Number)
		}
		var out []cty.Value
		for id := range s.All() {
			out = append(out, cty.NumberIntVal(int64(id)))
		}
		return cty.ListVal(out)
	})
}

func cpuListFunc() function.Function {
	return cpuFunc("Prints CPU numbers as the kernel does: cpulist([1, 2, 3, 8]) is \"1-3,8\". Takes lists and masks too.", cty.String, func(s cpuset.Set) cty.Value { return cty.StringVal(s.String()) })
}

func cpuMaskFunc() function.Function {
	return cpuFunc("Prints CPU numbers as a mask: cpumask(\"1-3,8\") is \"0x10e\".", cty.String, func(s cpuset.Set) cty.Value { return cty.StringVal(s.Mask()) })
}

func pciFunc() function.Function {
	return stringFunc("Returns the full form of a PCI address: pci(\"1:00.0\") is \"0000:01:00.0\".", "address", pciAddress)
}

// pciAddress reads [DOMAIN:]BUS:DEVICE.FUNCTION in hexadecimal. Domains have 16 bits, and more where a volume
// management device makes them (10000:...).
func pciAddress(s string) (string, error) {
	bad := fmt.Errorf("%q is not a PCI address like 0000:01:00.0 or 01:00.0", s)
	parts := strings.Split(strings.TrimSpace(s), ":")
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != 3 {
		return "", bad
	}
	device, fn, ok := strings.Cut(parts[2], ".")
	if !ok {
		return "", bad
	}
	var n [4]uint64
	for i, f := range []struct {
		text   string
		digits int
		max    uint64
	}{{parts[0], 8, 1<<32 - 1}, {parts[1], 2, 0xff}, {device, 2, 0x1f}, {fn, 1, 7}} {
		v, err := strconv.ParseUint(f.text, 16, 32)
		if err != nil || len(f.text) > f.digits || v > f.max {
			return "", bad
		}
		n[i] = v
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3]), nil
}

func macFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns a MAC address in lower case with colons: mac(\"AA-BB-CC-00-00-01\") is \"aa:bb:cc:00:00:01\". A second argument is added to it: mac(\"02:00:00:00:00:00\", 5) ends in 05.",
		Params:      []function.Parameter{{Name: "address", Type: cty.String}},
		VarParam:    &function.Parameter{Name: "offset", Type: cty.Number},
		Type: func(args []cty.Value) (cty.Type, error) {
			if len(args) > 2 {
				return cty.NilType, errors.New("mac takes an address and at most one offset")
			}
			return cty.String, nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.String)
			n, err := macaddr.Parse(args[0].AsString())
			if err != nil {
				return unknown, function.NewArgError(0, err)
			}
			if len(args) == 2 {
				var add int64
				if err := gocty.FromCtyValue(args[1], &add); err != nil {
					return unknown, function.NewArgErrorf(1, "a whole number is required")
				}
				const top = 1<<48 - 1
				if add > top || add < -top || n+add < 0 || n+add > top {
					return unknown, function.NewArgErrorf(1, "there is no MAC address %d after %s", add, macaddr.String(n))
				}
				n += add
			}
			return cty.StringVal(macaddr.String(n)), nil
		},
	})
}

func lineRateFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the highest frame rate of an Ethernet link in frames/s (RFC 2544): speed in bit/s or as \"10G\", frame size in bytes with the FCS. linerate(\"10G\", 64) is 14880952.",
		Params:      []function.Parameter{{Name: "speed", Type: cty.String}, {Name: "frame_size", Type: cty.Number}},
		Type:        function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.Number)
			speed, err := bitRate(args[0].AsString())
			if err != nil {
				return unknown, function.NewArgError(0, err)
			}
			size, err := intArg(args, 1)
			if err != nil {
				return unknown, err
			}
			if size < 64 || size > 65535 {
				return unknown, function.NewArgErrorf(1, "a frame has 64 to 65535 bytes, counted with the FCS, not %d", size)
			}
			// On the wire each frame has 20 bytes more: preamble and start delimiter 8, inter-frame gap 12.
			rate := speed.Quo(speed, new(big.Rat).SetInt64(int64(size+20)*8))
			return cty.NumberVal(new(big.Float).SetInt(new(big.Int).Quo(rate.Num(), rate.Denom()))), nil
		},
	})
}

// bitRate reads a number of bit/s with an optional k, M, G or T (powers of 1000).
func bitRate(s string) (*big.Rat, error) {
	text := strings.TrimSpace(s)
	factor := int64(1)
	if text != "" {
		switch text[len(text)-1] {
		case 'k', 'K':
			factor = 1e3
		case 'M':
			factor = 1e6
		case 'G':
			factor = 1e9
		case 'T':
			factor = 1e12
		}
	}
	number := text
	if factor > 1 {
		number = strings.TrimSpace(text[:len(text)-1])
	}
	bad := fmt.Errorf("%q is not a speed: write bit/s, as in 10000000000, or \"10G\" (k, M, G, T)", s)
	if number == "" || len(number) > 24 || strings.Trim(number, "0123456789.") != "" {
		return nil, bad
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok || r.Sign() <= 0 {
		return nil, bad
	}
	return r.Mul(r, new(big.Rat).SetInt64(factor)), nil
}

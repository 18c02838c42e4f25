package hand

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/frame"
)

// ParseRate reads a rate in frames per second: "250000", "14.88M", "500k", or "max" for as fast as possible, which is 0. Prefixes k, M and G are
// powers of 1000.
func ParseRate(s string) (float64, error) {
	if s == "max" {
		return 0, nil
	}
	number, by := s, 1.0
	for prefix, factor := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
		if n, ok := strings.CutSuffix(s, prefix); ok {
			number, by = n, factor
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 || strings.ContainsAny(number, "xX_") {
		return 0, fmt.Errorf("%q is no rate: want frames per second above 0 such as 250000, 500k or 14.88M, or max", s)
	}
	return v * by, nil
}

// ParseSize reads a frame size in bytes with FCS, or the name of a mix: "64", "simple", "aaaaaaaddddg" (RFC 6985).
func ParseSize(s string) (size int, mix []int, err error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 64 || n > 9216 {
			return 0, nil, fmt.Errorf("a frame has 64 to 9216 bytes with FCS, not %d", n)
		}
		return n, nil, nil
	}
	mix, err = frame.IMIX(s)
	if err != nil {
		return 0, nil, fmt.Errorf("want bytes with FCS such as 64, or a mix: %w", err)
	}
	return frame.Mean(mix), mix, nil
}

// ParseVLANs reads VLAN identifiers, outer first: "100" is one tag, "10,100" are two (QinQ). "" is none.
func ParseVLANs(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var out []int
	for w := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n > 4094 {
			return nil, fmt.Errorf("%q is no VLAN: want 1 to 4094", w)
		}
		out = append(out, n)
	}
	if len(out) > 2 {
		return nil, fmt.Errorf("there are %d tags; want one, or two for QinQ", len(out))
	}
	return out, nil
}

// LastCPU is the last CPU that this process may run on.
func LastCPU() (int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, fmt.Errorf("which CPUs this process may run on: %w", err)
	}
	for n := len(set)*64 - 1; n >= 0; n-- {
		if set.IsSet(n) {
			return n, nil
		}
	}
	return 0, errors.New("this process may run on no CPU")
}

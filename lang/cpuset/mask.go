package cpuset

import (
	"errors"
	"fmt"
	"strings"
)

// Mask prints the set as a hexadecimal mask, "0x10f", as pmd-cpu-mask and DPDK's -c take it; "0x0" for the empty set.
func (s Set) Mask() string {
	if s.IsEmpty() {
		return "0x0"
	}
	nibbles := make([]byte, s.ids[len(s.ids)-1]/4+1)
	for _, id := range s.ids {
		nibbles[len(nibbles)-1-id/4] |= 1 << (id % 4)
	}
	const digits = "0123456789abcdef"
	for i, n := range nibbles {
		nibbles[i] = digits[n]
	}
	return "0x" + string(nibbles)
}

// ParseMask reads a hexadecimal mask, with or without 0x, of any length up to Max bits. Groups separated by
// commas are 32 bits each, as the kernel prints them; a group may leave out leading zeros.
func ParseMask(mask string) (Set, error) {
	text := strings.TrimSpace(mask)
	if rest, ok := strings.CutPrefix(text, "0x"); ok {
		text = rest
	} else if rest, ok := strings.CutPrefix(text, "0X"); ok {
		text = rest
	}
	digits := text
	if strings.Contains(text, ",") {
		var b strings.Builder
		for group := range strings.SplitSeq(text, ",") {
			if group == "" || len(group) > 8 {
				return Set{}, fmt.Errorf("cpu mask %q: groups between commas must have 1 to 8 digits", shorten(mask))
			}
			b.WriteString(strings.Repeat("0", 8-len(group)) + group)
		}
		digits = b.String()
	}
	s, err := fromHex(digits)
	if err != nil {
		return Set{}, fmt.Errorf("cpu mask %q: %w", shorten(mask), err)
	}
	return s, nil
}

func fromHex(digits string) (Set, error) {
	if digits == "" {
		return Set{}, errors.New("it has no digits")
	}
	var in [Max + 1]bool
	for i := range len(digits) {
		var n int
		switch c := digits[i]; {
		case c >= '0' && c <= '9':
			n = int(c - '0')
		case c >= 'a' && c <= 'f':
			n = int(c-'a') + 10
		case c >= 'A' && c <= 'F':
			n = int(c-'A') + 10
		default:
			return Set{}, fmt.Errorf("%q is not a hexadecimal digit", string(rune(c)))
		}
		base := (len(digits) - 1 - i) * 4
		for bit := range 4 {
			if n&(1<<bit) == 0 {
				continue
			}
			if base+bit > Max {
				return Set{}, fmt.Errorf("bit %d is set: CPU numbers go from 0 to %d", base+bit, Max)
			}
			in[base+bit] = true
		}
	}
	return fromMarks(&in), nil
}

// ParseAny reads a mask when the text begins with 0x, else a list.
func ParseAny(text string) (Set, error) {
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "0x") || strings.HasPrefix(t, "0X") {
		return ParseMask(t)
	}
	return Parse(text)
}

package frame

import (
	"fmt"
	"strings"
)

// genome has the sizes of RFC 6985 section 4 by letter, FCS included. Its j (16000) is longer than any frame of ours, and z (the MTU) is no size.
var genome = [...]int{64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000}

// IMIX gives the sizes, FCS included, of a mix in the order in which they go out and are repeated: for providers.Traffic.Sizes. It knows
//
//   - "simple": 7:4:1 of 64, 594 and 1518 bytes, evenly spread;
//   - a genome of RFC 6985, such as "aaaaaaaddddg": a 64, b 128, c 256, d 512, e 1024, f 1280, g 1518, h 2112, i 9000.
func IMIX(name string) ([]int, error) {
	if name == "simple" {
		return []int{64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64}, nil
	}
	if name == "" {
		return nil, fmt.Errorf(`mix of sizes "" is empty: give "simple" or a genome such as "aaaaaaaddddg" (RFC 6985)`)
	}
	sizes := make([]int, 0, len(name))
	for _, c := range name {
		i := strings.IndexRune("abcdefghi", c)
		if i < 0 {
			return nil, fmt.Errorf(`mix of sizes %q is not known: give "simple" or a genome of the letters a to i such as "aaaaaaaddddg" (RFC 6985), not %q`, name, c)
		}
		sizes = append(sizes, genome[i])
	}
	return sizes, nil
}

// Mean is the mean size of a mix, rounded: for providers.Traffic.FrameSize. It is 0 for none.
func Mean(sizes []int) int {
	if len(sizes) == 0 {
		return 0
	}
	total := 0
	for _, s := range sizes {
		total += s
	}
	return (total + len(sizes)/2) / len(sizes)
}

// Package macaddr reads and writes MAC addresses of 48 bits.
package macaddr

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads an address: six pairs with colons or hyphens, three groups of four with dots, or twelve digits. Blanks around it do not matter.
func Parse(s string) (int64, error) {
	text := strings.TrimSpace(s)
	var groups []string
	want := 2
	switch {
	case strings.Contains(text, ":"):
		groups = strings.Split(text, ":")
	case strings.Contains(text, "-"):
		groups = strings.Split(text, "-")
	case strings.Contains(text, "."):
		groups, want = strings.Split(text, "."), 4
	default:
		groups, want = []string{text}, 12
	}
	digits := strings.Join(groups, "")
	ok := len(digits) == 12 && len(groups) == 12/want
	for _, g := range groups {
		ok = ok && len(g) == want
	}
	n, err := strconv.ParseUint(digits, 16, 48)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a MAC address such as 02:00:00:00:00:01", s)
	}
	return int64(n), nil
}

// String writes an address as six pairs with colons, in small letters.
func String(n int64) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

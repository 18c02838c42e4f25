package view

import (
	"fmt"
	"strings"
)

// SnapshotDiff compares two snapshots, by host lists of sorted lines. It says whether they are the same.
func SnapshotDiff(before, after map[string][]string, st Style) (string, bool) {
	var out strings.Builder
	lines := 0
	for _, h := range sortedKeys(merged(before, after)) {
		old, now := before[h], after[h]
		i, j := 0, 0
		put := func(symbol, color, line string) {
			fmt.Fprintf(&out, "%s host.%s  %s\n", st.paint(color, symbol), h, line)
			lines++
		}
		for i < len(old) || j < len(now) {
			switch {
			case j == len(now) || i < len(old) && old[i] < now[j]:
				put("-", red, old[i])
				i++
			case i == len(old) || now[j] < old[i]:
				put("+", green, now[j])
				j++
			default:
				i, j = i+1, j+1
			}
		}
	}
	if lines == 0 {
		return st.paint(green, "before and after: identical") + "\n", true
	}
	return out.String() + fmt.Sprintf("before and after: %s differ\n", plural(lines, "line")), false
}

package diagfmt

import (
	"slices"

	"github.com/agext/levenshtein"
)

// Suggest returns the candidate that given was most likely meant to be, or "" when none is near enough: at most
// two edits away, or one for names of up to three characters; neighbours in the wrong order are one edit. Equal distances go to the first in sorted order, so
// that messages are repeatable. A candidate equal to given is returned too.
func Suggest(given string, candidates []string) string {
	limit := 2
	if len(given) <= 3 {
		limit = 1
	}
	best, bestDistance := "", limit+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		d := levenshtein.Distance(given, c, nil)
		if d == 2 && swapped(given, c) {
			d = 1
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// swapped says whether two neighbouring characters in the wrong order are all that differs.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// DidYouMean is the sentence ` Did you mean "x"?`, with a leading space so that it can follow any sentence, or "" when Suggest
// finds nothing.
func DidYouMean(given string, candidates []string) string {
	s := Suggest(given, candidates)
	if s == "" {
		return ""
	}
	return ` Did you mean "` + s + `"?`
}

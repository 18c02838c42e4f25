package bootargs

import "slices"

// Found is what a command line had before an instance set something, by what is set: the words of that key. It is what makes a way back where the words of all
// stand in one list.
type Found map[string][]string

// Find records what is there for arguments that are not recorded yet. It returns a new map.
func (f Found) Find(words, args []string) Found {
	out := Found{}
	for k, v := range f {
		out[k] = v
	}
	for _, u := range units(args) {
		k := u.key()
		if _, known := out[k]; known {
			continue
		}
		out[k] = []string{}
		if Key(u[0]) == k {
			out[k] = append(out[k], ofKey(words, k)...)
		} else if u.at(words) >= 0 {
			out[k] = append(out[k], u...)
		}
	}
	return out
}

// Foreign lists the arguments that were there without us.
func (f Found) Foreign(args []string) []string {
	var out []string
	for _, u := range units(args) {
		if u.at(f[u.key()]) >= 0 {
			out = append(out, u...)
		}
	}
	return out
}

// edit gives a list of words the arguments that are wanted. had are those of the same instance before: what is wanted no more goes, and what was found comes back in its place. Where
// one value counts, ours stands in place of the others.
func edit(words []string, found Found, had, want []string) []string {
	wanted := map[string]bool{}
	for _, u := range units(want) {
		wanted[u.key()] = true
	}
	for _, u := range units(had) {
		if k := u.key(); !wanted[k] {
			words = replace(words, u, found[k])
		}
	}
	for _, u := range units(want) {
		words = replace(words, u, u)
	}
	return words
}

// replace puts words in the place of what sets the same as u, or at the end.
func replace(words []string, u unit, with []string) []string {
	var out []string
	done := len(with) == 0
	put := func() {
		if !done {
			out, done = append(out, with...), true
		}
	}
	one := u.key() == Key(u[0])
	for i := 0; i < len(words); i++ {
		switch {
		case one && Key(words[i]) == u.key():
			put()
		case !one && slices.EqualFunc(u, words[i:min(i+len(u), len(words))], same):
			put()
			i += len(u) - 1
		default:
			out = append(out, words[i])
		}
	}
	put()
	return out
}

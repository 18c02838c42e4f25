package bootargs

import (
	"maps"
	"slices"
)

// Found is what an instance has to know to go without a trace, by what is set: the key of an argument, or the whole of it where a key may stand several times.
type Found map[string]Was

// Was is one key before the instance set it.
type Was struct {
	Was  []string `json:"was,omitempty"` // the words that were there
	Ours []string `json:"ours"`          // what the instance has set in its life; others' words are never taken for ours
}

// Find adds what is there for arguments that are to be set. It returns a new map.
func (f Found) Find(words, args []string) Found {
	out := Found{}
	maps.Copy(out, f)
	for _, u := range units(args) {
		k := u.key()
		w, known := out[k]
		switch {
		case known:
		case Key(u[0]) == k:
			w.Was = ofKey(words, k)
		case u.at(words) >= 0:
			w.Was = u
		}
		if !slices.Contains(w.Ours, u.String()) {
			w.Ours = append(slices.Clone(w.Ours), u.String())
		}
		out[k] = w
	}
	return out
}

// Ours are all arguments that the instance has ever set.
func (f Found) Ours() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(f)) {
		for _, text := range f[k].Ours {
			out = append(out, Words(text)...)
		}
	}
	return out
}

// Foreign lists the arguments that were there without us.
func (f Found) Foreign(args []string) []string {
	var out []string
	for _, u := range units(args) {
		if u.at(f[u.key()].Was) >= 0 {
			out = append(out, u...)
		}
	}
	return out
}

// edit gives a list of words the arguments that are wanted. Where one value counts, ours stands in place of the others. What is ours and is wanted no more goes, and what was found comes back in its place.
func edit(words []string, found Found, want []string) []string {
	wanted := map[string]bool{}
	for _, u := range units(want) {
		wanted[u.key()] = true
	}
	for _, k := range slices.Sorted(maps.Keys(found)) {
		for _, text := range found[k].Ours {
			if u := unit(Words(text)); !wanted[k] && u.at(words) >= 0 {
				words = replace(words, u, func(at []string) bool { return slices.EqualFunc(u, at, same) }, found[k].Was)
				break
			}
		}
	}
	for _, u := range units(want) {
		one := u.key() == Key(u[0])
		words = replace(words, u, func(at []string) bool { return one && Key(at[0]) == u.key() || !one && slices.EqualFunc(u, at, same) }, u)
	}
	return words
}

// replace puts words in the place of those that match, which are as many as u has, or at the end.
func replace(words []string, u unit, match func([]string) bool, with []string) []string {
	var out []string
	done := len(with) == 0
	put := func() {
		if !done {
			out, done = append(out, with...), true
		}
	}
	for i := 0; i < len(words); i++ {
		if match(words[i:min(i+len(u), len(words))]) {
			put()
			i += len(u) - 1
			continue
		}
		out = append(out, words[i])
	}
	put()
	return out
}

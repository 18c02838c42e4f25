// Package cpuset reads, prints and combines sets of CPU numbers in the two spellings that Linux, Open vSwitch and
// DPDK use: lists ("0-3,8", the cpu-lists of Documentation/admin-guide/kernel-parameters.rst) and hexadecimal masks
// ("0x10f", or in groups of 32 bits as in /proc/irq/*/smp_affinity: "00000001,0000000f").
//
// A Set is an immutable value; the zero Set is empty. Numbers are 0 to Max.
package cpuset

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Max is the highest CPU number: Linux is built for at most 8192 CPUs (CONFIG_NR_CPUS on x86). The limit keeps a
// slip such as "0-4000000000" from filling memory.
const Max = 8191

// Set is a set of CPU numbers.
type Set struct{ ids []int } // ascending, without repetition

// Of makes a set of the numbers, in any order. A number outside 0 to Max is an error.
func Of(ids ...int) (Set, error) {
	for _, id := range ids {
		if id < 0 || id > Max {
			return Set{}, fmt.Errorf("%d is not a CPU number: they go from 0 to %d", id, Max)
		}
	}
	out := slices.Clone(ids)
	slices.Sort(out)
	return Set{ids: slices.Compact(out)}, nil
}

// All yields the numbers in ascending order.
func (s Set) All() iter.Seq[int] { return slices.Values(s.ids) }

// List returns the numbers in ascending order; never nil.
func (s Set) List() []int { return append([]int{}, s.ids...) }

// Len is how many there are.
func (s Set) Len() int { return len(s.ids) }

// IsEmpty says that there are none.
func (s Set) IsEmpty() bool { return len(s.ids) == 0 }

// Contains says whether id is in the set.
func (s Set) Contains(id int) bool { _, ok := slices.BinarySearch(s.ids, id); return ok }

// Equal says whether both have the same numbers.
func (s Set) Equal(o Set) bool { return slices.Equal(s.ids, o.ids) }

// Union has the numbers that are in either.
func (s Set) Union(o Set) Set {
	out := slices.Concat(s.ids, o.ids)
	slices.Sort(out)
	return Set{ids: slices.Compact(out)}
}

// Intersect has the numbers that are in both.
func (s Set) Intersect(o Set) Set { return s.filter(o.Contains) }

// Minus has the numbers of s that are not in o.
func (s Set) Minus(o Set) Set { return s.filter(func(id int) bool { return !o.Contains(id) }) }

// SubsetOf says whether all numbers of s are in o.
func (s Set) SubsetOf(o Set) bool { return s.Minus(o).IsEmpty() }

func (s Set) filter(keep func(int) bool) Set {
	var out []int
	for _, id := range s.ids {
		if keep(id) {
			out = append(out, id)
		}
	}
	return Set{ids: out}
}

// String prints the list form, "0-3,8"; nothing for the empty set.
func (s Set) String() string {
	var b strings.Builder
	for i := 0; i < len(s.ids); {
		j := i
		for j+1 < len(s.ids) && s.ids[j+1] == s.ids[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s.ids[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(s.ids[j]))
		}
		i = j + 1
	}
	return b.String()
}

// MarshalText writes the list form.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the list form.
func (s *Set) UnmarshalText(b []byte) (err error) { *s, err = Parse(string(b)); return err }

// Parse reads the list form: numbers, ranges "a-b" and ranges with a stride "a-b:used/group" (of every group of
// CPUs from a on, the first used ones), separated by commas. Blanks around an item are allowed; an empty string
// is the empty set.
func Parse(list string) (Set, error) {
	list = strings.TrimSpace(list)
	if list == "" {
		return Set{}, nil
	}
	var in [Max + 1]bool
	for item := range strings.SplitSeq(list, ",") {
		if err := mark(&in, strings.TrimSpace(item)); err != nil {
			return Set{}, fmt.Errorf("cpu list %q: %w", shorten(list), err)
		}
	}
	return fromMarks(&in), nil
}

func mark(in *[Max + 1]bool, item string) error {
	if item == "" {
		return errors.New("an item between the commas is missing")
	}
	span, stride, hasStride := strings.Cut(item, ":")
	lo, hi, isRange := strings.Cut(span, "-")
	first, err := number(lo)
	if err != nil {
		return err
	}
	last := first
	if isRange {
		if last, err = number(hi); err != nil {
			return err
		}
	}
	if last < first {
		return fmt.Errorf("range %q goes down: write %d-%d", shorten(span), last, first)
	}
	used, group := 1, 1
	if hasStride {
		if !isRange {
			return fmt.Errorf("%q: a stride needs a range before it, as in 0-7:2/4", shorten(item))
		}
		u, g, ok := strings.Cut(stride, "/")
		if !ok {
			return fmt.Errorf("stride %q must be USED/GROUP, as in 0-7:2/4", shorten(stride))
		}
		if used, err = number(u); err != nil {
			return err
		}
		if group, err = number(g); err != nil {
			return err
		}
		if used == 0 || group == 0 || used > group {
			return fmt.Errorf("stride %q: want 1 <= USED <= GROUP", stride)
		}
	}
	for id := first; id <= last; id++ {
		if (id-first)%group < used {
			in[id] = true
		}
	}
	return nil
}

// number reads a decimal CPU number; blanks, signs and anything above Max are refused.
func number(s string) (int, error) {
	if s == "" {
		return 0, errors.New("a number is missing")
	}
	n := 0
	if set, err := ParseMask(s); err == nil && strings.HasPrefix(strings.ToLower(s), "0x") {
		return 0, fmt.Errorf("%s is a mask, and this is a list: write %s", shorten(s), set)
	}
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, fmt.Errorf("%q is not a CPU number", shorten(s))
		}
		if n = n*10 + int(r-'0'); n > Max {
			return 0, fmt.Errorf("%s is not a CPU number: they go from 0 to %d", shorten(s), Max)
		}
	}
	return n, nil
}

func fromMarks(in *[Max + 1]bool) Set {
	var s Set
	for id, set := range in {
		if set {
			s.ids = append(s.ids, id)
		}
	}
	return s
}

// shorten keeps error texts readable when somebody gives a whole file.
func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

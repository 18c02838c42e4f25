package settings

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// packed is a set of names that the state keeps in little room: the packages of a host are two thousand, 30 kB of text.
type packed map[string]bool

// MarshalJSON writes the sorted names, deflated, in base64.
func (p packed) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := io.WriteString(z, strings.Join(slices.Sorted(maps.Keys(p)), "\n")); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return json.Marshal(b.Bytes())
}

// UnmarshalJSON reads what MarshalJSON writes. More than 16 MB of names are an error.
func (p *packed) UnmarshalJSON(data []byte) error {
	var b []byte
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	*p = packed{}
	if len(b) == 0 {
		return nil
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	const limit = 16 << 20
	text, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return err
	}
	if len(text) > limit {
		return fmt.Errorf("more than %d bytes of names", limit)
	}
	for name := range strings.SplitSeq(string(text), "\n") {
		if name != "" {
			(*p)[name] = true
		}
	}
	return nil
}

// compareRPM orders two EPOCH:VERSION-RELEASE as rpm does; an epoch that is not given is 0.
func compareRPM(a, b string) int {
	part := func(s string) (epoch, version, release string) {
		epoch, rest, ok := strings.Cut(s, ":")
		if !ok {
			epoch, rest = "0", s
		}
		if i := strings.LastIndexByte(rest, '-'); i >= 0 {
			return epoch, rest[:i], rest[i+1:]
		}
		return epoch, rest, ""
	}
	e1, v1, r1 := part(a)
	e2, v2, r2 := part(b)
	return cmp.Or(compareSegments(e1, e2), compareSegments(v1, v2), compareSegments(r1, r2))
}

// compareSegments is rpmvercmp (rpmio/rpmvercmp.c of rpm): runs of digits by number, runs of letters by text, a number is newer than letters; ~ sorts
// before everything, ^ after the end and before all else.
func compareSegments(a, b string) int {
	word := func(c byte) bool { return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	separator := func(r rune) bool { return (r > 0x7f || !word(byte(r))) && r != '~' && r != '^' }
	for {
		a, b = strings.TrimLeftFunc(a, separator), strings.TrimLeftFunc(b, separator)
		for _, mark := range []string{"~", "^"} {
			in, also := strings.HasPrefix(a, mark), strings.HasPrefix(b, mark)
			switch {
			case in && also:
				return compareSegments(a[1:], b[1:])
			case in && mark == "~", also && mark == "^" && a == "":
				return -1
			case also && mark == "~", in && mark == "^" && b == "":
				return 1
			case in:
				return -1
			case also:
				return 1
			}
		}
		if a == "" || b == "" {
			return strings.Compare(a, b)
		}
		numeric := digit(a[0])
		run := func(s string) int {
			i := 0
			for i < len(s) && word(s[i]) && digit(s[i]) == numeric {
				i++
			}
			return i
		}
		i, j := run(a), run(b)
		if j == 0 { // of different kinds
			if numeric {
				return 1
			}
			return -1
		}
		x, y := a[:i], b[:j]
		if numeric {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		a, b = a[i:], b[j:]
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

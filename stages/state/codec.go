package state

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrNewerFormat is wrapped by an error that says a file was written by a newer Plumb.
var ErrNewerFormat = errors.New("was written by a newer Plumb")

// New is an empty state with a lineage of its own.
func New(plumbVersion string) *State {
	return &State{
		Version:      FormatVersion,
		PlumbVersion: plumbVersion,
		Lineage:      newLineage(),
		Hosts:        map[string]Host{},
		Outputs:      map[string]Output{},
	}
}

// newLineage is a random UUID (RFC 9562 section 5.4).
func newLineage() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: see crypto/rand
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Encode writes a state as its file holds it: indented JSON with a final newline, instances sorted. It is
// deterministic.
func Encode(s *State) ([]byte, error) {
	sorted := *s
	sorted.Instances = slices.Clone(s.Instances)
	slices.SortStableFunc(sorted.Instances, compareInstances)
	if sorted.Instances == nil {
		sorted.Instances = []*Instance{}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(&sorted); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return buf.Bytes(), nil
}

// Decode reads what Encode wrote. Anything that is not a whole, consistent state is an error; one of a newer format wraps
// ErrNewerFormat.
func Decode(data []byte) (*State, error) {
	var s State
	if err := json.Unmarshal(data, &s); err != nil || s.Version != FormatVersion {
		if bad := checkFormat(data); bad != nil { // why a newer format cannot be read matters less than that it is newer
			return nil, bad
		}
		if err != nil {
			return nil, err
		}
	}
	if s.Lineage == "" {
		return nil, errors.New("it has no lineage")
	}
	seen := map[instanceKey]bool{}
	for _, i := range s.Instances {
		if i == nil || i.Addr.Resource.Type == "" {
			return nil, errors.New("it has an instance without an address")
		}
		if len(i.Attributes) == 0 {
			return nil, fmt.Errorf("%s has no attributes", i.Addr)
		}
		switch i.Status {
		case Ready, InDoubt, Incomplete:
		default:
			return nil, fmt.Errorf("%s has the unknown status %q", i.Addr, i.Status)
		}
		if k := keyOf(i); seen[k] {
			return nil, fmt.Errorf("%s is in it twice", i.Addr)
		} else {
			seen[k] = true
		}
	}
	if s.Hosts == nil {
		s.Hosts = map[string]Host{}
	}
	if s.Outputs == nil {
		s.Outputs = map[string]Output{}
	}
	return &s, nil
}

// header is what is looked at before the rest of a state file is trusted.
type header struct {
	Version      int    `json:"version"`
	PlumbVersion string `json:"plumb_version"`
	Serial       uint64 `json:"serial"`
	Lineage      string `json:"lineage"`
}

func checkFormat(data []byte) error {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	switch {
	case h.Version > FormatVersion:
		return fmt.Errorf("it %w (%s): its format is %d and this Plumb reads up to %d", ErrNewerFormat, h.PlumbVersion, h.Version, FormatVersion)
	case h.Version < 1:
		return fmt.Errorf("it has no format version")
	}
	return nil
}

// clone copies a state so deep that changing the copy's maps and instance list leaves the original alone. Instances are
// shared: they are never changed in place.
func clone(s *State) *State {
	c := *s
	c.Hosts = make(map[string]Host, len(s.Hosts))
	for k, v := range s.Hosts {
		c.Hosts[k] = v
	}
	c.Outputs = make(map[string]Output, len(s.Outputs))
	for k, v := range s.Outputs {
		c.Outputs[k] = v
	}
	c.Instances = slices.Clone(s.Instances)
	c.Generators = slices.Clone(s.Generators)
	return &c
}

package providers

import "fmt"

// Finding is one thing that an examination of a host found, against what a DPDK testbed needs.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`         // "IOMMU", "NIC 0000:18:00.0"
	Found   string `json:"found"`           // what there is, in a sentence
	Why     string `json:"why,omitempty"`   // why it matters; "" when all is well
	Do      string `json:"do,omitempty"`    // what to do about it; "" when nothing can be or has to be done
	Block   string `json:"block,omitempty"` // a resource of Plumb that does it, in HCL, when it is put into a configuration with one host; "" for none
}

// Level says how much a finding matters.
type Level int

// Levels, from what is well to what has to be changed before a testbed works.
const (
	OK      Level = iota // as it should be, or as it may be
	Advice               // figures may be somewhat better or steadier
	Warning              // figures will be lower, or differ from one run to the next
	Hinders              // something of a testbed cannot work
)

var levels = map[Level]string{OK: "ok", Advice: "advice", Warning: "warning", Hinders: "problem"}

func (l Level) String() string { return levels[l] }

// MarshalText makes JSON of it.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText made.
func (l *Level) UnmarshalText(text []byte) error {
	for level, name := range levels {
		if name == string(text) {
			*l = level
			return nil
		}
	}
	return fmt.Errorf("%q is no level of a finding", text)
}

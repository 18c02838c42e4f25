package openflow

import (
	"strconv"
	"strings"
)

// Ports maps the names of a bridge's ports to their OpenFlow port numbers. nil: no name is known.
type Ports map[string]int

// reserved are the reserved ports of ovs-ofctl(8) and their numbers in OpenFlow 1.0.
func reserved() map[string]int {
	return map[string]int{
		"IN_PORT": 65528, "TABLE": 65529, "NORMAL": 65530, "FLOOD": 65531, "ALL": 65532, "CONTROLLER": 65533,
		"LOCAL": 65534, "NONE": 65535, "ANY": 65535,
	}
}

// ref brings a port into one form: its number in decimal, or its name in quotes where the number is not known.
func (p Ports) ref(s string) string {
	s = strings.Trim(s, `"`)
	if n, err := parseNumber(s); err == nil && n.IsInt64() {
		i := n.Int64()
		if i >= 0xffffff00 && i <= 0xffffffff { // OpenFlow 1.1 and later number the reserved ports in 32 bits
			i -= 0xffff0000
		}
		return strconv.FormatInt(i, 10)
	}
	if n, ok := p[s]; ok {
		return strconv.Itoa(n)
	}
	if n, ok := reserved()[strings.ToUpper(s)]; ok {
		return strconv.Itoa(n)
	}
	return `"` + strings.ReplaceAll(s, `"`, "") + `"`
}

package openflow

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
)

// DefaultPriority is the priority of a flow that names none (ovs-ofctl(8)).
const DefaultPriority = 32768

// Flow is a flow in canonical form. Two flows with the same Key are the same entry of a flow table; when they are equal as a
// whole they mean the same. Statistics and ages are left out.
type Flow struct {
	Key
	Cookie     uint64
	Idle, Hard int // time-outs in seconds
	Importance int
	Flags      string // of send_flow_rem, no_packet_counts, no_byte_counts
	Actions    string
}

// Key identifies an entry of a flow table.
type Key struct {
	Table    int
	Priority int
	Match    string
}

// String writes the flow so that ovs-ofctl reads it, fields that are as by default left out.
func (f Flow) String() string {
	s := f.Strict()
	if f.Cookie != 0 {
		s = fmt.Sprintf("cookie=0x%x,", f.Cookie) + s
	}
	for _, t := range []struct {
		name string
		n    int
	}{{"idle_timeout", f.Idle}, {"hard_timeout", f.Hard}, {"importance", f.Importance}} {
		if t.n != 0 {
			s += "," + t.name + "=" + strconv.Itoa(t.n)
		}
	}
	if f.Flags != "" {
		s += "," + f.Flags
	}
	return s + " actions=" + f.Actions
}

// Strict writes the key as ovs-ofctl's delete_strict takes it.
func (k Key) Strict() string {
	s := fmt.Sprintf("table=%d,priority=%d", k.Table, k.Priority)
	if k.Match != "" {
		s += "," + k.Match
	}
	return s
}

// Parser reads flows against the port names of one bridge. It is safe for concurrent use.
type Parser struct {
	ports   Ports
	fields  map[string]field
	aliases map[string]string
	nxm     map[string]string
	last    atomic.Pointer[canonical] // flows that are generated all have the same actions
}

// canonical are actions as they were given and in canonical form.
type canonical struct{ given, form string }

// NewParser makes a parser. Names that are not in ports are kept as names.
func NewParser(ports Ports) *Parser {
	return &Parser{ports: ports, fields: fields(), aliases: aliases(), nxm: nxm()}
}

// Parse reads a flow as given to add-flow or printed by dump-flows. The error says which part cannot be read.
func (p *Parser) Parse(line string) (Flow, error) {
	if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); i >= 0 {
		return Flow{}, fmt.Errorf("flow %q: a control character stands at byte %d: a flow is one line", line, i)
	}
	match, actions, ok := cutActions(line)
	if !ok {
		return Flow{}, fmt.Errorf("flow %q: actions= is missing", line)
	}
	f := Flow{Key: Key{Priority: DefaultPriority}}
	b := builder{p: p, fields: map[string]value{}, words: map[string]string{}}
	var flagList []string
	for _, item := range splitTop(match, ", \t\r\n") {
		name, val, hasVal := strings.Cut(item, "=")
		name = strings.ToLower(name)
		var err error
		switch name {
		case "table":
			f.Table, err = small(val, 254)
		case "priority":
			f.Priority, err = small(val, 65535)
		case "idle_timeout":
			f.Idle, err = small(val, 65535)
		case "hard_timeout":
			f.Hard, err = small(val, 65535)
		case "importance":
			f.Importance, err = small(val, 65535)
		case "cookie":
			var n value
			n, err = field{bits: 64}.parse(strings.TrimSuffix(strings.ToLower(val), "/-1"))
			if err == nil {
				f.Cookie = n.v.Uint64()
			}
		case "duration", "n_packets", "n_bytes", "idle_age", "hard_age", "reset_counts", "check_overlap":
		case "send_flow_rem", "no_packet_counts", "no_byte_counts":
			flagList = append(flagList, name)
		default:
			err = b.add(name, val, hasVal)
		}
		if err != nil {
			return Flow{}, fmt.Errorf("flow %q: %s: %w", line, name, err)
		}
	}
	sort.Strings(flagList)
	f.Flags = strings.Join(flagList, ",")
	f.Match = b.String()
	var err error
	if f.Actions, err = p.actions(actions); err != nil {
		return Flow{}, fmt.Errorf("flow %q: %w", line, err)
	}
	return f, nil
}

// ParseDump reads the output of dump-flows: reply headers and empty lines are passed over, and so are flows that keep, which may be nil, does
// not want.
func (p *Parser) ParseDump(out string, keep func(Flow) bool) (Set, error) {
	set := Set{}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "OFPST_FLOW") || strings.HasPrefix(line, "NXST_FLOW") {
			continue
		}
		f, err := p.Parse(line)
		if err != nil {
			return nil, err
		}
		if keep == nil || keep(f) {
			set[f.Key] = f
		}
	}
	return set, nil
}

func small(s string, limit int) (int, error) {
	if n, err := strconv.Atoi(s); err == nil && s[0] >= '1' && s[0] <= '9' && n <= limit { // most are
		return n, nil
	}
	n, err := parseNumber(s)
	if err != nil {
		return 0, err
	}
	if !n.IsInt64() || n.Int64() > int64(limit) {
		return 0, fmt.Errorf("%s is beyond %d", s, limit)
	}
	return int(n.Int64()), nil
}

// cutActions splits at "actions=" (or the abbreviation "action="), outside of parentheses.
func cutActions(line string) (match, actions string, ok bool) {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == 'a' && depth == 0 && (i == 0 || strings.IndexByte(", \t", line[i-1]) >= 0):
			for _, word := range []string{"actions=", "action="} {
				if strings.HasPrefix(line[i:], word) {
					return line[:i], line[i+len(word):], true
				}
			}
		}
	}
	return "", "", false
}

// splitTop splits at any of seps outside of parentheses, brackets and quotes; empty parts are dropped.
func splitTop(s, seps string) []string {
	var out []string
	depth, start, quoted := 0, 0, false
	cut := func(end int) {
		if part := strings.TrimSpace(s[start:end]); part != "" {
			out = append(out, part)
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[':
			depth++
		case (c == ')' || c == ']') && depth > 0:
			depth--
		case depth == 0 && strings.IndexByte(seps, c) >= 0:
			cut(i)
			start = i + 1
		}
	}
	cut(len(s))
	return out
}

package openflow

import (
	"errors"
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

// actions brings a list of actions into canonical form. Their order is kept: it has a meaning.
func (p *Parser) actions(s string) (string, error) {
	if c := p.last.Load(); c != nil && c.given == s {
		return c.form, nil
	}
	form, err := p.actionList(s)
	if err == nil {
		p.last.Store(&canonical{given: strings.Clone(s), form: form})
	}
	return form, err
}

func (p *Parser) actionList(s string) (string, error) {
	if depth(s) != 0 {
		return "", fmt.Errorf("actions %q: a parenthesis is not closed", s)
	}
	var out []string
	for _, a := range splitTop(s, ", \t\r\n") {
		c, err := p.action(a)
		if err != nil {
			return "", fmt.Errorf("action %q: %w", a, err)
		}
		if c != "" {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return "drop", nil
	}
	return strings.Join(out, ","), nil
}

func depth(s string) int {
	d := 0
	for _, c := range s {
		switch c {
		case '(':
			d++
		case ')':
			d--
		}
	}
	return d
}

// cutAction splits name:arg, name(arg) and name=arg.
func cutAction(a string) (name, arg string, has bool) {
	i := strings.IndexAny(a, ":(=")
	if i < 0 {
		return a, "", false
	}
	name, arg = a[:i], a[i+1:]
	if a[i] == '(' {
		arg = strings.TrimSuffix(arg, ")")
	}
	return name, strings.TrimSpace(arg), true
}

func (p *Parser) action(a string) (string, error) {
	name, arg, has := cutAction(a)
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "drop":
		return "", nil
	case "output":
		return p.output(arg)
	case "controller":
		return controller(arg), nil
	case "normal", "flood", "all", "local", "in_port", "table":
		if !has {
			return p.output(name)
		}
	case "mod_dl_src", "mod_dl_dst", "mod_nw_src", "mod_nw_dst", "mod_nw_ecn", "mod_nw_ttl", "mod_tp_src", "mod_tp_dst", "mod_vlan_pcp":
		return p.setField(arg, strings.TrimPrefix(strings.Replace(name, "mod_vlan_pcp", "mod_dl_vlan_pcp", 1), "mod_"))
	case "set_vlan_pcp":
		return p.setField(arg, "vlan_pcp")
	case "mod_vlan_vid", "set_vlan_vid":
		n, err := small(arg, 4095)
		if err != nil {
			return "", err
		}
		return p.setField(strconv.Itoa(n|0x1000), "vlan_vid")
	case "mod_nw_tos":
		n, err := small(arg, 255)
		if err != nil {
			return "", err
		}
		return p.setField(strconv.Itoa(n>>2), "ip_dscp")
	case "set_tunnel", "set_tunnel64":
		return p.setField(arg, "tun_id")
	case "set_field":
		val, dst, ok := strings.Cut(arg, "->")
		if !ok {
			return "", errors.New("-> is missing")
		}
		return p.setField(val, dst)
	case "load":
		return p.load(arg)
	case "move":
		src, dst, ok := strings.Cut(arg, "->")
		if !ok {
			return "", errors.New("-> is missing")
		}
		return "move:" + p.subfield(src) + "->" + p.subfield(dst), nil
	case "strip_vlan", "pop_vlan":
		return "pop_vlan", nil
	case "push_vlan", "push_mpls", "pop_mpls":
		return hexArg(name, arg)
	case "set_queue", "goto_table", "meter", "group", "dec_mpls_ttl", "set_mpls_ttl":
		if !has {
			return name, nil
		}
		n, err := small(arg, 1<<32-1)
		return name + ":" + strconv.Itoa(n), err
	case "enqueue":
		return p.enqueue(arg)
	case "resubmit":
		return p.resubmit(arg), nil
	case "write_metadata":
		v, err := p.fields["metadata"].parse(arg)
		if err != nil {
			return "", err
		}
		return "write_metadata:" + p.show("metadata", v), nil
	case "write_actions", "clone":
		inner, err := p.actions(arg)
		return name + "(" + inner + ")", err
	case "ct":
		return p.conntrack(arg)
	case "sample":
		return sortedArgs(name, arg, map[string]string{"obs_domain_id": "0", "obs_point_id": "0"}), nil
	case "note":
		for strings.HasSuffix(arg, ".00") {
			arg = strings.TrimSuffix(arg, ".00")
		}
		return "note:" + strings.ToLower(arg), nil
	case "conjunction":
		parts := strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' })
		return "conjunction(" + strings.Join(parts, ",") + ")", nil
	case "bundle", "bundle_load":
		return name + "(" + strings.ReplaceAll(strings.ReplaceAll(arg, " ", ""), "slaves:", "members:") + ")", nil
	}
	if !has { // a bare port
		if n, err := parseNumber(name); err == nil && n.IsInt64() {
			return p.output(name)
		}
		if _, ok := p.ports[strings.Trim(a, `"`)]; ok || strings.HasPrefix(a, `"`) {
			return p.output(a)
		}
		return name, nil
	}
	return strings.Join(strings.Fields(a), ""), nil
}

// output writes an output to a port, or to a field that holds one, or with a length limit.
func (p *Parser) output(arg string) (string, error) {
	if arg == "" {
		return "", errors.New("no port is given")
	}
	if strings.Contains(arg, "[") {
		return "output:" + p.subfield(arg), nil
	}
	if strings.Contains(arg, "=") { // output(port=1,max_len=100)
		args := splitTop(arg, ",")
		for i, a := range args {
			if n, ok := strings.CutPrefix(a, "port="); ok {
				args[i] = "port=" + p.ports.ref(n)
			}
		}
		sort.Strings(args)
		return "output(" + strings.Join(args, ",") + ")", nil
	}
	ref := p.ports.ref(arg)
	switch strings.ToUpper(strings.Trim(arg, `"`)) {
	case "CONTROLLER":
		return controller(""), nil
	case "IN_PORT", "NORMAL", "FLOOD", "ALL", "TABLE":
		if ref != strconv.Itoa(reserved()[strings.ToUpper(arg)]) { // a port that is called so
			return "output:" + ref, nil
		}
		return strings.ToLower(arg), nil
	}
	for name, n := range reserved() { // by number
		if ref == strconv.Itoa(n) && name != "LOCAL" && name != "NONE" && name != "ANY" {
			if name == "CONTROLLER" {
				return controller(""), nil
			}
			return strings.ToLower(name), nil
		}
	}
	return "output:" + ref, nil
}

// controller writes CONTROLLER:LENGTH; the default length is "all" (65535).
func controller(arg string) string {
	arg = strings.ReplaceAll(arg, " ", "")
	if arg == "" {
		return "controller:65535"
	}
	if !strings.Contains(arg, "=") {
		return "controller:" + arg
	}
	var rest []string
	length := "65535"
	for _, a := range splitTop(arg, ",") {
		if n, ok := strings.CutPrefix(a, "max_len="); ok {
			length = n
			continue
		}
		if a == "reason=action" || a == "id=0" { // the defaults
			continue
		}
		rest = append(rest, a)
	}
	if len(rest) == 0 {
		return "controller:" + length
	}
	sort.Strings(rest)
	return "controller(max_len=" + length + "," + strings.Join(rest, ",") + ")"
}

// setField writes set_field:VALUE[/MASK]->FIELD with the value as a number.
func (p *Parser) setField(val, dst string) (string, error) {
	name := p.fieldName(strings.TrimSuffix(dst, "[]"))
	f, ok := p.fields[name]
	if !ok || strings.Contains(dst, "[") && !strings.HasSuffix(dst, "[]") {
		return "set_field:" + strings.TrimSpace(val) + "->" + strings.TrimSpace(dst), nil
	}
	if f.kind == port {
		return "set_field:" + p.ports.ref(val) + "->" + name, nil
	}
	v, err := f.parse(strings.TrimSpace(val))
	if err != nil {
		return "", err
	}
	return writeSet(f, v), nil
}

func writeSet(f field, v value) string {
	s := "set_field:" + f.text(v.v)
	if v.m.Cmp(ones(f.bits)) != 0 {
		s += "/" + f.text(v.m)
	}
	return s + "->" + spelling(f.name)
}

// load writes load:N->FIELD[a..b] as the set_field that does the same.
func (p *Parser) load(arg string) (string, error) {
	val, dst, ok := strings.Cut(arg, "->")
	if !ok {
		return "", errors.New("-> is missing")
	}
	name, from, to, ok := p.bitsOf(dst)
	f, known := p.fields[name]
	if !ok || !known || f.bits == 0 || to >= f.bits {
		return "load:" + strings.TrimSpace(val) + "->" + strings.TrimSpace(dst), nil
	}
	if f.kind == port {
		return "set_field:" + p.ports.ref(val) + "->" + name, nil
	}
	n, err := parseNumber(strings.TrimSpace(val))
	if err != nil {
		return "", err
	}
	width := to - from + 1
	if n.BitLen() > width {
		return "", fmt.Errorf("%s does not fit %d bits", val, width)
	}
	return writeSet(f, value{v: n.Lsh(n, uint(from)), m: new(big.Int).Lsh(ones(width), uint(from))}), nil
}

// bitsOf reads FIELD[], FIELD[n] or FIELD[a..b].
func (p *Parser) bitsOf(s string) (name string, from, to int, ok bool) {
	head, rng, found := strings.Cut(strings.TrimSuffix(strings.TrimSpace(s), "]"), "[")
	name = p.fieldName(head)
	if !found || rng == "" {
		return name, 0, p.fields[name].bits - 1, true
	}
	a, b, isRange := strings.Cut(rng, "..")
	from, err := strconv.Atoi(a)
	to = from
	if err == nil && isRange {
		to, err = strconv.Atoi(b)
	}
	return name, from, to, err == nil && from >= 0 && to >= from
}

func (p *Parser) subfield(s string) string {
	name, from, to, ok := p.bitsOf(s)
	f, known := p.fields[name]
	if !ok || !known || from == 0 && to == f.bits-1 {
		if ok && known {
			return spelling(name) + "[]"
		}
		return strings.TrimSpace(s)
	}
	if from == to {
		return fmt.Sprintf("%s[%d]", spelling(name), from)
	}
	return fmt.Sprintf("%s[%d..%d]", spelling(name), from, to)
}

// fieldName is the canonical name of a field that an action names.
func (p *Parser) fieldName(s string) string {
	s = strings.TrimSpace(s)
	if n, ok := p.nxm[strings.ToUpper(s)]; ok {
		return n
	}
	s = strings.ToLower(s)
	if n, ok := p.aliases[s]; ok {
		return n
	}
	return s
}

func (p *Parser) enqueue(arg string) (string, error) {
	parts := strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ':' })
	if len(parts) != 2 {
		return "", errors.New("want a port and a queue")
	}
	q, err := small(strings.TrimPrefix(parts[1], "q"), 1<<32-1)
	return fmt.Sprintf("set_queue:%d,output:%s,pop_queue", q, p.ports.ref(parts[0])), err
}

func (p *Parser) resubmit(arg string) string {
	parts := strings.Split(arg, ",")
	if in := strings.TrimSpace(parts[0]); in != "" {
		if strings.EqualFold(in, "in_port") {
			in = ""
		} else {
			in = p.ports.ref(in)
		}
		parts[0] = in
	}
	if len(parts) == 1 {
		if parts[0] == "" {
			return "resubmit:in_port"
		}
		return "resubmit:" + parts[0]
	}
	for i := range parts[1:] {
		parts[i+1] = strings.TrimSpace(parts[i+1])
	}
	return "resubmit(" + strings.Join(parts, ",") + ")"
}

func (p *Parser) conntrack(arg string) (string, error) {
	args := splitTop(arg, ",")
	for i, a := range args {
		if inner, ok := strings.CutPrefix(a, "exec("); ok {
			c, err := p.actions(strings.TrimSuffix(inner, ")"))
			if err != nil {
				return "", err
			}
			args[i] = "exec(" + c + ")"
		} else if name, n, ok := strings.Cut(a, "="); ok && (name == "zone" || name == "table") {
			if v, err := parseNumber(n); err == nil {
				args[i] = name + "=" + v.String()
			} else {
				args[i] = name + "=" + p.subfield(n)
			}
		}
	}
	sort.Strings(args)
	return "ct(" + strings.Join(args, ",") + ")", nil
}

func sortedArgs(name, arg string, defaults map[string]string) string {
	var args []string
	for _, a := range splitTop(arg, ",") {
		if k, v, ok := strings.Cut(a, "="); ok {
			if d, has := defaults[k]; has && d == v {
				continue
			}
		}
		args = append(args, a)
	}
	sort.Strings(args)
	return name + "(" + strings.Join(args, ",") + ")"
}

func hexArg(name, arg string) (string, error) {
	n, err := parseNumber(arg)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:0x%04x", name, n), nil
}

package addrs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parser eats an address from the left.
type parser struct{ in string }

func (p *parser) accept(s string) bool {
	rest, ok := strings.CutPrefix(p.in, s)
	if ok {
		p.in = rest
	}
	return ok
}

func (p *parser) name() (string, error) {
	n := strings.IndexAny(p.in, ".[")
	if n < 0 {
		n = len(p.in)
	}
	name := p.in[:n]
	if name == "" {
		return "", errors.New("a name is missing")
	}
	for _, r := range name {
		if r != '_' && r != '-' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9') && r < 0x80 {
			return "", fmt.Errorf("%q is not a name", name)
		}
	}
	p.in = p.in[n:]
	return name, nil
}

func (p *parser) key() (Key, error) {
	if !p.accept("[") {
		return Key{}, nil
	}
	if strings.HasPrefix(p.in, `"`) {
		q, err := strconv.QuotedPrefix(p.in)
		if err != nil {
			return Key{}, errors.New(`the key's closing quote is missing`)
		}
		s, err := strconv.Unquote(q)
		if err != nil {
			return Key{}, fmt.Errorf("key %s: %w", q, err)
		}
		p.in = p.in[len(q):]
		if !p.accept("]") {
			return Key{}, errors.New("the key's closing bracket is missing")
		}
		return StringKey(s), nil
	}
	num, rest, ok := strings.Cut(p.in, "]")
	i, err := strconv.Atoi(num)
	if !ok || err != nil || i < 0 {
		return Key{}, fmt.Errorf("%q is neither a whole number nor a quoted string", num)
	}
	p.in = rest
	return IntKey(i), nil
}

func (p *parser) moduleStep() (Step, error) {
	if !p.accept("module.") {
		return Step{}, errors.New("module. is missing")
	}
	name, err := p.name()
	if err != nil {
		return Step{}, err
	}
	key, err := p.key()
	return Step{Name: name, Key: key}, err
}

func (p *parser) module() (Module, error) {
	m := Root()
	for strings.HasPrefix(p.in, "module.") {
		s, err := p.moduleStep()
		if err != nil {
			return m, err
		}
		m = m.Child(s.Name, s.Key)
		if !p.accept(".") {
			break
		}
	}
	return m, nil
}

func (p *parser) resource() (Resource, error) {
	m, err := p.module()
	if err != nil {
		return Resource{}, err
	}
	r := Resource{Module: m}
	if p.accept("data.") {
		r.Mode = Data
	}
	if r.Type, err = p.name(); err != nil {
		return r, err
	}
	if !p.accept(".") {
		return r, fmt.Errorf("want type.name, got only %q", r.Type)
	}
	r.Name, err = p.name()
	return r, err
}

// quote writes a key so that strconv.Unquote and HCL both read it back.
func quote(s string) string { return strconv.Quote(s) }

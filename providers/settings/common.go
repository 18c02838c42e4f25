package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/hostkit"
)

// cache is what all instances of a type read of one host and run. Whoever changes something drops it.
type cache[T any] struct {
	mu  sync.Mutex
	val *T
}

func cacheOf[T any](ctx context.Context, h providers.Host, key any) (*cache[T], error) {
	if h == nil {
		return nil, errNoHost
	}
	v, err := h.Shared(ctx, key, func(context.Context) (any, error) { return &cache[T]{}, nil })
	if err != nil {
		return nil, err
	}
	return v.(*cache[T]), nil
}

// get returns what was read, or reads it. Callers wait for one reading.
func (c *cache[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.val == nil {
		v, err := read(ctx)
		if err != nil {
			return v, err
		}
		c.val = &v
	}
	return *c.val, nil
}

func (c *cache[T]) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.val = nil
}

var errNoHost = errors.New("the instance lives on a host, and none is given")

// begin is the start of every Apply. What is begun is finished, whatever becomes of the context.
func begin(ctx context.Context, req providers.ApplyRequest) (context.Context, error) {
	if req.Host == nil {
		return nil, errNoHost
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return context.WithoutCancel(ctx), nil
}

// recorded decodes what Prepare recorded; the zero value when there is nothing.
func recorded[T any](raw json.RawMessage) (T, error) {
	var u T
	if len(raw) == 0 {
		return u, nil
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return u, fmt.Errorf("what was recorded of what was found: %w", err)
	}
	return u, nil
}

// problem is something that one argument makes impossible.
func problem(attribute, summary, detail string, args ...any) providers.Problem {
	p := providers.Problem{Summary: summary, Detail: fmt.Sprintf(detail, args...)}
	if attribute != "" {
		p.Path = cty.GetAttrPath(attribute)
	}
	return p
}

// planned starts a plan: without a host, or without root, there is nothing more to find out.
func planned(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, *providers.Facts, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	if req.Host == nil {
		return res, nil, nil
	}
	f, err := req.Host.Facts(ctx)
	if err != nil {
		return res, nil, err
	}
	if !f.Root {
		res.Problems = append(res.Problems, hostkit.NotRoot(req.Host.Name()))
	}
	return res, f, nil
}

// unchanged says that a plan changes nothing of what was read: there is nothing to check on the host.
func unchanged(req providers.PlanRequest) bool {
	return !req.Prior.IsNull() && req.Prior.RawEquals(req.Proposed)
}

// with replaces attributes of an object.
func with(obj cty.Value, attrs map[string]cty.Value) cty.Value {
	out := obj.AsValueMap()
	for k, v := range attrs {
		out[k] = v
	}
	return cty.ObjectVal(out)
}

// texts are the elements of a list of strings; unknown and null ones are left out. ok is false when anything is unknown.
func texts(obj cty.Value, name string) (list []string, ok bool) {
	v := obj.GetAttr(name)
	if !v.IsWhollyKnown() {
		return nil, false
	}
	if v.IsNull() {
		return nil, true
	}
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); !e.IsNull() {
			list = append(list, e.AsString())
		}
	}
	return list, true
}

// pairs are the elements of a map of strings; null ones are left out. ok is false when anything is unknown.
func pairs(obj cty.Value, name string) (m map[string]string, ok bool) {
	v := obj.GetAttr(name)
	m = map[string]string{}
	if !v.IsWhollyKnown() {
		return m, false
	}
	if v.IsNull() {
		return m, true
	}
	for it := v.ElementIterator(); it.Next(); {
		if k, e := it.Element(); !e.IsNull() {
			m[k.AsString()] = e.AsString()
		}
	}
	return m, true
}

func textList(list []string) cty.Value {
	if len(list) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	out := make([]cty.Value, len(list))
	for i, s := range list {
		out[i] = cty.StringVal(s)
	}
	return cty.ListVal(out)
}

func textMap(m map[string]string) cty.Value {
	if len(m) == 0 {
		return cty.MapValEmpty(cty.String)
	}
	out := map[string]cty.Value{}
	for k, s := range m {
		out[k] = cty.StringVal(s)
	}
	return cty.MapVal(out)
}

// each makes a check of one text one of a list of texts.
func each(check func(cty.Value) error) func(cty.Value) error {
	return func(v cty.Value) error {
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			switch {
			case !e.IsKnown():
			case e.IsNull():
				return errors.New("an element is null")
			default:
				if err := check(e); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// oneLine refuses what cannot stand in an argument or a line of a file.
func oneLine(v cty.Value) error {
	if s := v.AsString(); strings.ContainsAny(s, "\x00\n\r") {
		return fmt.Errorf("%q holds a line break or a NUL byte", s)
	}
	return nil
}

// noNUL refuses what cannot be an argument of a command.
func noNUL(v cty.Value) error {
	if s := v.AsString(); strings.ContainsRune(s, 0) {
		return fmt.Errorf("%q holds a NUL byte", s)
	}
	return nil
}

// absolute checks a path on a host: absolute, in its shortest form, without the wildcards that files are read by.
func absolute(v cty.Value) error {
	p := v.AsString()
	switch {
	case !path.IsAbs(p):
		return fmt.Errorf("%q is not an absolute path", p)
	case path.Clean(p) != p || p == "/":
		return fmt.Errorf("%q: write %s, without . and .. and a slash at its end, and not /", p, path.Clean(p))
	case strings.ContainsAny(p, `*?[\`):
		return fmt.Errorf(`%q holds one of * ? [ \, which would name other files too`, p)
	}
	return oneLine(v)
}

// run runs a command for its output.
func run(ctx context.Context, h providers.Host, args ...string) (string, error) {
	res, err := h.Conn().Run(ctx, providers.Cmd{Args: args})
	return string(res.Stdout), err
}

// exited is the status of a command that ended with one other than 0.
func exited(err error) (status int, ok bool) {
	var exit *providers.ExitError
	if !errors.As(err, &exit) {
		return 0, false
	}
	return exit.Exit, true
}

// lastLines are the last n lines of a text, for errors.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// batch gathers questions: those that come while one round trip is under way are asked together in the next.
type batch[V any] struct {
	ask func(ctx context.Context, keys []string) (map[string]V, error)

	mu      sync.Mutex
	waiting *round[V]
	busy    chan struct{} // one token
}

type round[V any] struct {
	keys  []string
	once  sync.Once
	value map[string]V
	err   error
}

func newBatch[V any](ask func(context.Context, []string) (map[string]V, error)) *batch[V] {
	b := &batch[V]{ask: ask, busy: make(chan struct{}, 1)}
	b.busy <- struct{}{}
	return b
}

// get asks for one key. An error is that of the whole round trip.
func (b *batch[V]) get(ctx context.Context, key string) (v V, err error) {
	b.mu.Lock()
	if b.waiting == nil {
		b.waiting = &round[V]{}
	}
	r := b.waiting
	if !slices.Contains(r.keys, key) {
		r.keys = append(r.keys, key)
	}
	b.mu.Unlock()

	select {
	case <-b.busy:
		defer func() { b.busy <- struct{}{} }()
	case <-ctx.Done():
		return v, ctx.Err()
	}
	r.once.Do(func() {
		b.mu.Lock()
		b.waiting = nil
		b.mu.Unlock()
		r.value, r.err = b.ask(ctx, r.keys)
	})
	return r.value[key], r.err
}

// noValue is a list or map that is not given.
func unset(v cty.Value) bool { return v.IsKnown() && v.IsNull() }

// optional and required are the attributes that most types have, in short.
func required(t cty.Type, cost schema.Cost, check func(cty.Value) error, description string) *schema.Attribute {
	return &schema.Attribute{Type: t, Required: true, Cost: cost, Validate: check, Description: description}
}

func optional(t cty.Type, cost schema.Cost, check func(cty.Value) error, description string) *schema.Attribute {
	return &schema.Attribute{Type: t, Optional: true, Cost: cost, Validate: check, Description: description}
}

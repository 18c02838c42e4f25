package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// world is a folder that stands for a host: a file for each object, with its mark in the first line, and a file for each setting. Changes are
// made in several parts, and between them somebody may end the process.
type world struct {
	dir    string
	crash  func(string)
	fail   map[string]error                       // by object or setting name: Apply fails with it before it does anything
	during func(ctx context.Context, name string) // told in the middle of an Apply, and of a reboot
	// What a reboot does: see fuse_test.go.
	rebootFails error
	stubborn    bool // fuses that are new stay out
	reboots     []string
	forgotten   []string // hosts
}

func (w *world) point(s string) {
	if w.crash != nil {
		w.crash(s)
	}
}

func (w *world) middle(ctx context.Context, name string) error {
	w.point("in the middle of " + name)
	if w.during != nil {
		w.during(ctx, name)
	}
	return ctx.Err()
}

// snapshot is all that is in the world.
func (w *world) snapshot() string {
	var out strings.Builder
	filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(p)
			rel, _ := filepath.Rel(w.dir, p)
			fmt.Fprintf(&out, "%s: %q\n", rel, data)
		}
		return err
	})
	return out.String()
}

func (w *world) set() *providers.Set {
	return &providers.Set{
		Resources:  []providers.Resource{box{w}, knob{w}, note{}, fuse{w}, lamp{w}},
		Data:       []providers.DataSource{look{w}},
		HostSchema: &schema.Block{Attributes: map[string]*schema.Attribute{"address": {Type: cty.String, Optional: true}, "jump": {Type: cty.String, Optional: true, Reference: schema.RefOtherHost}}},
		OpenHost: func(_ context.Context, name string, config cty.Value, _ providers.Hosts) (providers.Host, error) {
			return fakeHost{name: name, w: w}, nil
		},
		Reboot:        w.reboot,
		RebootAllowed: func(cty.Value) (bool, string) { return true, "" },
	}
}

// fakeHost is a host that nothing is asked of.
type fakeHost struct {
	providers.Host
	name string
	w    *world
}

func (h fakeHost) Forget() error { h.w.forgot(h.name); return nil }

func (w *world) forgot(host string) {
	w.forgotten = append(w.forgotten, host)
}

func (h fakeHost) Name() string { return h.name }
func (h fakeHost) Close() error { return nil }

func (h fakeHost) Reads() providers.Reads { return providers.Reads{} }

func (h fakeHost) Facts(context.Context) (*providers.Facts, error) {
	return &providers.Facts{Value: cty.EmptyObjectVal}, nil
}

// box is an object.
type box struct{ w *world }

func (box) Schema() *schema.Resource {
	return &schema.Resource{Type: "box", Version: 3, Block: schema.Block{
		Attributes: map[string]*schema.Attribute{
			"name":    {Type: cty.String, Required: true, Cost: schema.Replace},
			"content": {Type: cty.String, Optional: true},
			"secret":  {Type: cty.String, Optional: true, Sensitive: true},
			"id":      {Type: cty.String, Computed: true},
		},
		Blocks: map[string]*schema.NestedBlock{"slot": {Nesting: schema.List, Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"in": {Type: cty.String, Optional: true}, "at": {Type: cty.String, Computed: true}}}}},
	}}
}

type boxFile struct{ Mark, Content, Secret string }

func (b box) path(v cty.Value) string {
	return filepath.Join(b.w.dir, "box-"+v.GetAttr("name").AsString())
}

func text(v cty.Value) string {
	if v.IsNull() {
		return ""
	}
	return v.AsString()
}

func (b box) Read(_ context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	data, err := os.ReadFile(b.path(req.Prior))
	if errors.Is(err, fs.ErrNotExist) {
		return providers.ReadResult{Current: cty.NullVal(req.Prior.Type())}, nil
	}
	var f boxFile
	if err := json.Unmarshal(data, &f); err != nil {
		f = boxFile{Mark: string(data)} // half made
	}
	if f.Mark != req.Mark.Address {
		return providers.ReadResult{}, providers.ErrForeign
	}
	attrs := req.Prior.AsValueMap()
	attrs["content"], attrs["secret"], attrs["id"] = optional(f.Content), optional(f.Secret), b.id(req.Prior)
	return providers.ReadResult{Current: cty.ObjectVal(attrs)}, nil
}

func optional(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

func (b box) id(v cty.Value) cty.Value { return cty.StringVal("id of " + v.GetAttr("name").AsString()) }

func (b box) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	var res providers.ApplyResult
	if req.Planned.IsNull() {
		name := req.Prior.GetAttr("name").AsString()
		if err := b.w.fail[name]; err != nil {
			return res, err
		}
		if err := b.w.middle(ctx, name); err != nil {
			return res, err
		}
		if err := os.Remove(b.path(req.Prior)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return res, err
		}
		return providers.ApplyResult{New: req.Planned}, nil
	}
	name := req.Planned.GetAttr("name").AsString()
	if err := b.w.fail[name]; err != nil {
		return res, err
	}
	req.Log("making " + name)
	if req.Prior.IsNull() {
		if err := os.WriteFile(b.path(req.Planned), []byte(req.Mark.Address), 0o600); err != nil {
			return res, err
		}
	}
	if err := b.w.middle(ctx, name); err != nil {
		return res, err
	}
	data, err := json.Marshal(boxFile{req.Mark.Address, text(req.Planned.GetAttr("content")), text(req.Planned.GetAttr("secret"))})
	if err == nil {
		err = os.WriteFile(b.path(req.Planned), data, 0o600)
	}
	attrs := req.Planned.AsValueMap()
	attrs["id"] = b.id(req.Planned)
	if slots := attrs["slot"]; slots.LengthInt() > 0 {
		var out []cty.Value
		for _, s := range slots.AsValueSlice() {
			m := s.AsValueMap()
			m["at"] = cty.StringVal("here")
			out = append(out, cty.ObjectVal(m))
		}
		attrs["slot"] = cty.ListVal(out)
	}
	return providers.ApplyResult{New: cty.ObjectVal(attrs)}, err
}

// knob is a setting that lies in two files.
type knob struct{ w *world }

var _ providers.Preparer = knob{}

func (knob) Schema() *schema.Resource {
	return &schema.Resource{Type: "knob", Setting: true, Block: schema.Block{Attributes: map[string]*schema.Attribute{
		"name":  {Type: cty.String, Required: true, Cost: schema.Replace},
		"value": {Type: cty.String, Required: true},
	}}}
}

func (k knob) paths(name string) []string {
	return []string{filepath.Join(k.w.dir, "knob-"+name+".a"), filepath.Join(k.w.dir, "knob-"+name+".b")}
}

func (k knob) get(name string) ([]string, error) {
	var out []string
	for _, p := range k.paths(name) {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		out = append(out, string(data))
	}
	return out, nil
}

func (k knob) Read(_ context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	got, err := k.get(req.Prior.GetAttr("name").AsString())
	if err != nil {
		return providers.ReadResult{}, err
	}
	attrs := req.Prior.AsValueMap()
	attrs["value"] = cty.StringVal(got[0])
	if got[0] != got[1] {
		attrs["value"] = cty.StringVal(got[0] + " and " + got[1])
	}
	return providers.ReadResult{Current: cty.ObjectVal(attrs)}, nil
}

func (k knob) Prepare(_ context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	if req.Undo != nil {
		return req.Undo, nil
	}
	got, err := k.get(req.Planned.GetAttr("name").AsString())
	if err != nil {
		return nil, err
	}
	return json.Marshal(got)
}

func (k knob) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	v := req.Planned
	if v.IsNull() {
		v = req.Prior
	}
	name := v.GetAttr("name").AsString()
	if err := k.w.fail[name]; err != nil {
		return providers.ApplyResult{}, err
	}
	want := []string{text(v.GetAttr("value")), text(v.GetAttr("value"))}
	if req.Planned.IsNull() {
		if err := json.Unmarshal(req.Undo, &want); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("what was found first: %w", err)
		}
	}
	for i, p := range k.paths(name) {
		if i > 0 {
			if err := k.w.middle(ctx, name); err != nil {
				return providers.ApplyResult{}, err
			}
		}
		if err := os.WriteFile(p, []byte(want[i]), 0o600); err != nil {
			return providers.ApplyResult{}, err
		}
	}
	return providers.ApplyResult{New: req.Planned}, nil
}

// note lives in the state alone.
type note struct{}

func (note) Schema() *schema.Resource {
	return &schema.Resource{Type: "note", Hostless: true, Block: schema.Block{Attributes: map[string]*schema.Attribute{
		"input":  {Type: cty.String, Optional: true},
		"output": {Type: cty.String, Computed: true, Volatile: true},
	}}}
}

func (note) Read(_ context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	return providers.ReadResult{Current: req.Prior}, nil
}

func (note) Apply(_ context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, nil
	}
	in := req.Planned.GetAttr("input")
	return providers.ApplyResult{New: cty.ObjectVal(map[string]cty.Value{"input": in, "output": in})}, nil
}

// look is a data source: the content of a box.
type look struct{ w *world }

func (look) Schema() *schema.Resource {
	return &schema.Resource{Type: "look", Block: schema.Block{Attributes: map[string]*schema.Attribute{
		"id": {Type: cty.String, Required: true}, "files": {Type: cty.Number, Computed: true},
	}}}
}

func (l look) Read(_ context.Context, _ providers.Host, config cty.Value) (cty.Value, error) {
	entries, err := os.ReadDir(l.w.dir)
	attrs := config.AsValueMap()
	attrs["files"] = cty.NumberIntVal(int64(len(entries)))
	return cty.ObjectVal(attrs), err
}

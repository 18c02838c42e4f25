package apply

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// fuse is a setting that takes effect with a reboot: the file .next is what the next boot reads, .now what the running system has.
type fuse struct{ w *world }

var (
	_ providers.Preparer = fuse{}
	_ providers.Planner  = fuse{}
	_ providers.Remover  = fuse{}
)

func (fuse) Schema() *schema.Resource {
	return &schema.Resource{Type: "fuse", Setting: true, Survives: true, Block: schema.Block{Attributes: map[string]*schema.Attribute{
		"name":   {Type: cty.String, Required: true, Cost: schema.Replace},
		"value":  {Type: cty.String, Required: true},
		"active": {Type: cty.Bool, Computed: true, Cost: schema.HostReboot},
		"boots":  {Type: cty.String, Computed: true, Volatile: true},
	}}}
}

func (f fuse) file(name, ext string) string { return filepath.Join(f.w.dir, "fuse-"+name+ext) }

func (f fuse) get(name, ext string) string {
	data, _ := os.ReadFile(f.file(name, ext))
	return string(data)
}

func (f fuse) Read(_ context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	name := req.Prior.GetAttr("name").AsString()
	next := f.get(name, ".next")
	if next == "" { // taken back, whatever the running system has
		return providers.ReadResult{Current: cty.NullVal(req.Prior.Type())}, nil
	}
	attrs := req.Prior.AsValueMap()
	attrs["value"], attrs["active"], attrs["boots"] = cty.StringVal(next), cty.BoolVal(f.get(name, ".now") == next), cty.StringVal(f.get(name, ".now"))
	return providers.ReadResult{Current: cty.ObjectVal(attrs)}, nil
}

func (f fuse) Plan(_ context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	attrs := req.Proposed.AsValueMap()
	attrs["active"] = cty.True
	r := providers.PlanResult{Planned: cty.ObjectVal(attrs)}
	if v := req.Desired.GetAttr("value"); !v.IsKnown() || f.get(req.Desired.GetAttr("name").AsString(), ".now") != v.AsString() {
		r.Cost = schema.HostReboot
		attrs["boots"] = cty.UnknownVal(cty.String)
		r.Planned = cty.ObjectVal(attrs)
	}
	return r, nil
}

func (f fuse) Removal(_ context.Context, req providers.RemovalRequest) (providers.RemovalResult, error) {
	var was string
	if err := json.Unmarshal(req.Undo, &was); err != nil {
		return providers.RemovalResult{}, err
	}
	if f.get(req.Prior.GetAttr("name").AsString(), ".now") != was {
		return providers.RemovalResult{Cost: schema.HostReboot}, nil
	}
	return providers.RemovalResult{}, nil
}

func (f fuse) Prepare(_ context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	if req.Undo != nil {
		return req.Undo, nil
	}
	return json.Marshal(f.get(req.Planned.GetAttr("name").AsString(), ".next"))
}

func (f fuse) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	v, want := req.Planned, ""
	if v.IsNull() {
		v = req.Prior
		if err := json.Unmarshal(req.Undo, &want); err != nil {
			return providers.ApplyResult{}, err
		}
	} else {
		want = text(v.GetAttr("value"))
	}
	name := v.GetAttr("name").AsString()
	if err := f.w.middle(ctx, name); err != nil {
		return providers.ApplyResult{}, err
	}
	if err := f.keep(name, ".next", want); err != nil {
		return providers.ApplyResult{}, err
	}
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, nil
	}
	attrs := v.AsValueMap()
	attrs["active"], attrs["boots"] = cty.True, cty.StringVal("as if it had been booted")
	return providers.ApplyResult{New: cty.ObjectVal(attrs)}, nil
}

// keep writes a file, or removes it where it would be empty.
func (f fuse) keep(name, ext, text string) error {
	if text != "" {
		return os.WriteFile(f.file(name, ext), []byte(text), 0o600)
	}
	if err := os.Remove(f.file(name, ext)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lamp is an object that a reboot puts out.
type lamp struct{ w *world }

func (lamp) Schema() *schema.Resource {
	return &schema.Resource{Type: "lamp", Block: schema.Block{Attributes: map[string]*schema.Attribute{"name": {Type: cty.String, Required: true, Cost: schema.Replace}}}}
}

func (l lamp) file(v cty.Value) string {
	return filepath.Join(l.w.dir, "lamp-"+v.GetAttr("name").AsString())
}

func (l lamp) Read(_ context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	if _, err := os.Stat(l.file(req.Prior)); err != nil {
		return providers.ReadResult{Current: cty.NullVal(req.Prior.Type())}, nil
	}
	return providers.ReadResult{Current: req.Prior}, nil
}

func (l lamp) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	v := req.Planned
	if v.IsNull() {
		v = req.Prior
	}
	if err := l.w.middle(ctx, v.GetAttr("name").AsString()); err != nil {
		return providers.ApplyResult{}, err
	}
	if !req.Planned.IsNull() {
		return providers.ApplyResult{New: v}, os.WriteFile(l.file(v), []byte("on"), 0o600)
	}
	if err := os.Remove(l.file(v)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return providers.ApplyResult{}, err
	}
	return providers.ApplyResult{New: req.Planned}, nil
}

// reboot puts lamps out and makes what fuses keep for the next boot what there is now, one after the other. A machine that has been told to reboot does it also when Plumb is killed, so what it does
// is done before anybody may be killed.
func (w *world) reboot(_ context.Context, h providers.Host, log func(string)) error {
	w.point("before the command to reboot")
	if err := w.rebootFails; err != nil {
		return err
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	f := fuse{w}
	for _, e := range entries {
		name, isFuse := strings.CutPrefix(e.Name(), "fuse-")
		switch {
		case strings.HasPrefix(e.Name(), "lamp-"):
			err = os.Remove(filepath.Join(w.dir, e.Name()))
		case isFuse && strings.HasSuffix(name, ".now"):
			name = strings.TrimSuffix(name, ".now")
			err = f.keep(name, ".now", f.get(name, ".next"))
		case isFuse && !w.stubborn:
			name = strings.TrimSuffix(name, ".next")
			err = f.keep(name, ".now", f.get(name, ".next"))
		}
		if err != nil {
			return err
		}
	}
	w.reboots = append(w.reboots, h.Name())
	w.point("waiting for it to come back")
	if w.during != nil {
		w.during(context.Background(), "reboot")
	}
	log("it is back")
	return h.Forget()
}

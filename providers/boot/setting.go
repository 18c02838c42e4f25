package boot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/hostkit"
)

// settingType is a resource type that keeps arguments for the kernel: it differs from the others by how its configuration says them.
//
// An instance's arguments are its own: others are left alone, and go on being there when the instance goes. Active says whether the running kernel has them; a change of it is what a reboot is for.
type settingType struct {
	schema *schema.Resource
	// args are the arguments of a known configuration. facts may be nil.
	args func(v cty.Value, facts *providers.Facts) ([]string, error)
	// found puts arguments as they were found back into the words of a configuration.
	found func(prior cty.Value, args []string) cty.Value
	// problems are what cannot work beside what holds for all.
	problems func(v cty.Value, facts *providers.Facts, host string) []providers.Problem
	claims   func(v cty.Value) providers.Claims
}

var (
	_ providers.Resource = settingType{}
	_ providers.Planner  = settingType{}
	_ providers.Preparer = settingType{}
	_ providers.Remover  = settingType{}
	_ providers.Claimer  = settingType{}
)

func activeAttribute() *schema.Attribute {
	return &schema.Attribute{Type: cty.Bool, Computed: true, Cost: schema.HostReboot, Description: "Whether the running kernel was booted with all of it. A reboot makes it so."}
}

func (t settingType) Schema() *schema.Resource { return t.schema }

// Read tells what the boot loader keeps, and whether the running kernel has it.
func (t settingType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	gone := providers.ReadResult{Current: cty.NullVal(t.schema.Block.ImpliedType())}
	l, err := loaderOf(ctx, req.Host)
	if err != nil {
		return gone, err
	}
	b, err := l.look(ctx)
	if err != nil {
		return gone, err
	}
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return gone, err
	}
	want, err := t.args(req.Prior, facts)
	if err != nil {
		return gone, err
	}
	kept, there := b.kept(req.Mark, want)
	if !there {
		return gone, nil
	}
	current := req.Prior
	if !slices.Equal(kept, want) {
		current = t.found(req.Prior, kept)
	}
	out := current.AsValueMap()
	out["active"] = cty.BoolVal(len(missing(b.cmdline, kept)) == 0)
	return providers.ReadResult{Current: cty.ObjectVal(out)}, nil
}

// Plan wants the arguments active; it costs a reboot unless the running kernel has just what is wanted.
func (t settingType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	planned := req.Proposed.AsValueMap()
	planned["active"] = cty.True
	res := providers.PlanResult{Planned: cty.ObjectVal(planned)}
	if req.Host == nil || !req.Desired.IsWhollyKnown() {
		return res, nil
	}
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return res, err
	}
	l, err := loaderOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	b, err := l.look(ctx)
	if err != nil {
		return res, err
	}
	if !facts.Root {
		res.Problems = append(res.Problems, hostkit.NotRoot(req.Host.Name()))
	}
	if b.kind == noLoader {
		res.Problems = append(res.Problems, providers.Problem{Host: req.Host.Name(), Summary: "Unknown boot loader", Detail: fmt.Sprintf("On %s %s. Set the arguments by hand, and leave the resource out.", req.Host.Name(), noLoaderText)})
	}
	if t.problems != nil {
		res.Problems = append(res.Problems, t.problems(req.Desired, facts, req.Host.Name())...)
	}
	want, err := t.args(req.Desired, facts)
	if err != nil {
		return res, err
	}
	var gone []string
	if !req.Prior.IsNull() {
		had, err := t.args(req.Prior, facts)
		if err != nil {
			return res, err
		}
		for _, a := range had {
			if !slices.Contains(want, a) && count(b.cmdline, a) > 0 {
				gone = append(gone, a)
			}
		}
	}
	if len(missing(b.cmdline, want)) > 0 || len(gone) > 0 {
		res.Cost = schema.HostReboot
	}
	return res, nil
}

// Removal costs a reboot when the running kernel has arguments that came from the instance alone.
func (t settingType) Removal(ctx context.Context, req providers.RemovalRequest) (providers.RemovalResult, error) {
	var res providers.RemovalResult
	l, err := loaderOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	b, err := l.look(ctx)
	if err != nil {
		return res, err
	}
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return res, err
	}
	args, err := t.args(req.Prior, facts)
	if err != nil {
		return res, err
	}
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return res, err
	}
	for _, a := range args {
		if count(b.cmdline, a) > 0 && !slices.Contains(u.Had, a) {
			res.Cost = schema.HostReboot
		}
	}
	return res, nil
}

// undo is what was found.
type undo struct {
	Had []string `json:"had,omitempty"` // arguments of ours that the host had without us
}

func decodeUndo(raw json.RawMessage) (undo, error) {
	var u undo
	if len(raw) == 0 {
		return u, nil
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return u, fmt.Errorf("what was recorded of the boot loader: %w", err)
	}
	return u, nil
}

// Prepare records which of the arguments are there without us.
func (t settingType) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	if len(req.Undo) > 0 {
		return req.Undo, nil
	}
	l, err := loaderOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	l.drop()
	b, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return nil, err
	}
	args, err := t.args(req.Planned, facts)
	if err != nil {
		return nil, err
	}
	u := undo{}
	kept := b.cmdline
	if b.kind == grubbyTool {
		kept = b.next
	}
	for _, a := range args {
		if count(kept, a) > 0 {
			u.Had = append(u.Had, a)
		}
	}
	return json.Marshal(u)
}

// Apply keeps the arguments for the next boot, or takes them out. It answers as if the reboot had been, which the engine sees to.
func (t settingType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	l, err := loaderOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return providers.ApplyResult{}, err
	}
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	l.drop()
	b, err := l.look(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	var had, want []string
	if !req.Prior.IsNull() {
		if had, err = t.args(req.Prior, facts); err != nil {
			return providers.ApplyResult{}, err
		}
	}
	if !req.Planned.IsNull() {
		if want, err = t.args(req.Planned, facts); err != nil {
			return providers.ApplyResult{}, err
		}
	}
	kept, there := b.kept(req.Mark, append(slices.Clone(had), want...))
	if req.Planned.IsNull() && !there {
		return providers.ApplyResult{New: req.Planned}, nil
	}
	if b.kind == grubbyTool { // what the host had by itself stays
		had = slices.DeleteFunc(slices.Clone(had), func(a string) bool { return slices.Contains(u.Had, a) })
	}
	// What the tools have begun is finished, whatever becomes of the context: half a grub.cfg boots nothing.
	ctx = context.WithoutCancel(ctx)
	if !slices.Equal(kept, want) || req.Planned.IsNull() || len(missing(b.cmdline, want)) > 0 {
		req.Log("writing the boot loader's configuration: " + strings.Join(want, " "))
		if err := l.set(ctx, req.Mark, had, want); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("kernel arguments: %w", err)
		}
	}
	return providers.ApplyResult{New: req.Planned}, nil
}

// Claims are the keys: two instances that set one differently would undo one another.
func (t settingType) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	c := providers.Claims{}
	if t.claims != nil {
		c = t.claims(planned)
	}
	facts, err := h.Facts(ctx)
	if err != nil {
		return c, err
	}
	args, err := t.args(planned, facts)
	if err != nil {
		return c, nil // unknown parts
	}
	seen := map[string]bool{}
	for _, a := range args {
		if k := key(a); !many(k) && !seen[k] {
			seen[k] = true
			c.Unique = append(c.Unique, providers.Unique{Scope: "kernel argument", Value: k})
		}
	}
	return c, nil
}

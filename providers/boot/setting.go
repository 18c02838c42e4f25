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
	"plumb/providers/internal/bootargs"
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
	// at is where in the configuration the i-th of the arguments comes from.
	at func(i int) cty.Path
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
	b, facts, err := seen(ctx, req.Host)
	if err != nil {
		return gone, err
	}
	want, err := t.args(req.Prior, facts)
	if err != nil {
		return gone, err
	}
	kept, there := b.Kept(req.Mark, want)
	if !there {
		return gone, nil
	}
	current := req.Prior
	if !slices.Equal(kept, want) {
		current = t.found(req.Prior, kept)
	}
	out := current.AsValueMap()
	out["active"] = cty.BoolVal(b.Active(kept))
	return providers.ReadResult{Current: cty.ObjectVal(out)}, nil
}

// seen is what is known of the boot loader and the host.
func seen(ctx context.Context, h providers.Host) (*bootargs.Boot, *providers.Facts, error) {
	l, err := bootargs.Of(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	b, err := l.Look(ctx)
	if err != nil {
		return nil, nil, err
	}
	facts, err := h.Facts(ctx)
	return b, facts, err
}

// Plan wants the arguments active; it costs a reboot unless the running kernel has just what is wanted.
func (t settingType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	planned := req.Proposed.AsValueMap()
	planned["active"] = cty.True
	res := providers.PlanResult{Planned: cty.ObjectVal(planned)}
	if req.Host == nil || !req.Desired.IsWhollyKnown() {
		return res, nil
	}
	b, facts, err := seen(ctx, req.Host)
	if err != nil {
		return res, err
	}
	host := req.Host.Name()
	switch {
	case !facts.Root: // who may not read the boot loader's files either
		res.Problems = append(res.Problems, hostkit.NotRoot(host))
	case b.Kind == bootargs.None:
		res.Problems = append(res.Problems, providers.Problem{Host: host, Summary: "Unknown boot loader", Detail: fmt.Sprintf("On %s %s. Set the arguments by hand, and leave the resource out.", host, bootargs.Unknown)})
	}
	if t.problems != nil {
		res.Problems = append(res.Problems, t.problems(req.Desired, facts, host)...)
	}
	want, err := t.args(req.Desired, facts)
	if err != nil {
		return res, err
	}
	var had []string
	if !req.Prior.IsNull() {
		if had, err = t.args(req.Prior, facts); err != nil {
			return res, err
		}
	}
	for _, w := range b.Conflicts(req.Mark, had, want) {
		res.Problems = append(res.Problems, providers.Problem{Path: t.at(0), Summary: "Set elsewhere already",
			Detail: fmt.Sprintf("The command line of %s has %s by itself (%s), and the kernel takes the first %s only. Take it out there.", host, w, b.Source, bootargs.Key(w))})
	}
	if !b.Active(want) || len(b.Gone(had, want)) > 0 {
		res.Cost = schema.HostReboot
	}
	return res, nil
}

// Removal costs a reboot when the running kernel has arguments that came from the instance alone.
func (t settingType) Removal(ctx context.Context, req providers.RemovalRequest) (providers.RemovalResult, error) {
	var res providers.RemovalResult
	b, _, err := seen(ctx, req.Host)
	if err != nil {
		return res, err
	}
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return res, err
	}
	if ours := u.Found.Ours(); len(b.Gone(ours, u.Found.Foreign(ours))) > 0 {
		res.Cost = schema.HostReboot
	}
	return res, nil
}

// undo is what was found.
type undo struct {
	Found bootargs.Found `json:"found"` // words by what they set
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

// Prepare records what is there of what will be set.
func (t settingType) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return nil, err
	}
	l, err := bootargs.Of(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	l.Drop()
	b, facts, err := seen(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	args, err := t.args(req.Planned, facts)
	if err != nil {
		return nil, err
	}
	u.Found = u.Found.Find(b.Others(req.Mark), args)
	return json.Marshal(u)
}

// Apply keeps the arguments for the next boot, or takes them out. It answers as if the reboot had been, which the engine sees to.
func (t settingType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	l, err := bootargs.Of(ctx, req.Host)
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
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c := bootargs.Change{Mark: req.Mark, Found: u.Found}
	if !req.Planned.IsNull() {
		if c.Want, err = t.args(req.Planned, facts); err != nil {
			return providers.ApplyResult{}, err
		}
		req.Log("keeping for the next boot: " + strings.Join(c.Want, " "))
	}
	if err := l.Set(ctx, c); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("kernel arguments: %w", err)
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
	c.Unique = bootargs.Uniques(args, t.at)
	return c, nil
}

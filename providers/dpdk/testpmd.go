package dpdk

import (
	"context"
	"errors"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// Testpmd is dpdk_testpmd.
type Testpmd struct{ schema *schema.Resource }

var (
	_ providers.Resource = (*Testpmd)(nil)
	_ providers.Planner  = (*Testpmd)(nil)
	_ providers.Claimer  = (*Testpmd)(nil)
	_ providers.Counter  = (*Testpmd)(nil)
	_ providers.Resetter = (*Testpmd)(nil)
)

// NewTestpmd is the type.
func NewTestpmd() *Testpmd { return &Testpmd{schema: testpmdSchema()} }

// Schema is constant.
func (t *Testpmd) Schema() *schema.Resource { return t.schema }

var errNoHost = errors.New("testpmd runs on a host, and none is given")

// Read finds the process by its mark. The command line that it runs with tells any difference. One that has ended has no command line, and is gone
// when its folder is too: what it left has to be removed.
func (t *Testpmd) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	if req.Host == nil {
		return providers.ReadResult{}, errNoHost
	}
	in := newInstance(req.Host, req.Mark)
	p, err := in.find(ctx)
	if err != nil {
		return providers.ReadResult{}, err
	}
	if p == nil {
		remains, err := in.remains(ctx)
		if err != nil {
			return providers.ReadResult{}, err
		}
		if !remains {
			return providers.ReadResult{Current: cty.NullVal(req.Prior.Type())}, nil
		}
		p = &running{}
	}
	return providers.ReadResult{Current: complete(req.Prior, req.Mark, p.argv)}, nil
}

// complete fills in the computed attributes.
func complete(v cty.Value, mark providers.Mark, argv []string) cty.Value {
	out := v.AsValueMap()
	out["file_prefix"] = cty.StringVal(testpmdSpec(v, mark).prefix)
	out["command"] = stringList(argv)
	return cty.ObjectVal(out)
}

// Apply starts the process, or ends it and starts it anew with other arguments, or ends it and removes what it left.
func (t *Testpmd) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	if req.Host == nil {
		return providers.ApplyResult{}, errNoHost
	}
	if err := ctx.Err(); err != nil {
		return providers.ApplyResult{}, err
	}
	in := newInstance(req.Host, req.Mark)
	if req.Planned.IsNull() {
		if err := in.stop(ctx, testpmdSpec(req.Prior, req.Mark)); err != nil {
			return providers.ApplyResult{}, err
		}
		return providers.ApplyResult{New: req.Planned}, nil
	}
	want := testpmdSpec(req.Planned, req.Mark)
	p, err := in.find(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if p != nil && slices.Equal(p.argv, want.argv()) && !req.Reapply {
		// An apply was killed after it had started the process; whether its ports came up was not seen.
		if err := in.awaitReady(ctx, want); err == nil {
			return providers.ApplyResult{New: complete(req.Planned, req.Mark, want.argv())}, nil
		} else if ctx.Err() != nil {
			return providers.ApplyResult{}, err
		}
	}
	old := want
	if !req.Prior.IsNull() {
		old = testpmdSpec(req.Prior, req.Mark)
	}
	if p != nil {
		req.Log("ending dpdk-testpmd to start it anew")
		if err := in.stop(ctx, old); err != nil {
			return providers.ApplyResult{}, err
		}
	}
	gone := providers.ApplyResult{New: cty.NullVal(req.Planned.Type())}
	if err := in.start(ctx, want, req.Log); err != nil {
		return gone, err
	}
	return providers.ApplyResult{New: complete(req.Planned, req.Mark, want.argv())}, nil
}

package dpdk

import (
	"context"
	"errors"
	"fmt"
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

// Count reads the ports of every process through its telemetry and adds them up. A process that has ended is an error: its counters are gone.
func (t *Testpmd) Count(ctx context.Context, h providers.Host, of []providers.Subject) ([]providers.Counters, error) {
	if h == nil {
		return nil, errNoHost
	}
	out := make([]providers.Counters, len(of))
	for i, s := range of {
		sum, err := sumPorts(ctx, h.Conn(), text(s.Value, "file_prefix"))
		if err != nil {
			return nil, fmt.Errorf("count frames of %s: %w", s.Addr, err)
		}
		out[i] = providers.Counters{Rx: sum.Rx, Tx: sum.Tx, RxBytes: sum.RxBytes, TxBytes: sum.TxBytes, Through: true,
			Drops: map[string]uint64{"rx_missed": sum.Missed, "rx_errors": sum.RxErr, "rx_nombuf": sum.NoMbuf, "tx_errors": sum.TxErr}}
	}
	return out, nil
}

func sumPorts(ctx context.Context, conn providers.Conn, prefix string) (stats, error) {
	var sum stats
	t, err := dialTelemetry(ctx, conn, prefix)
	if err != nil {
		return sum, err
	}
	defer t.close()
	ids, err := t.ports(ctx)
	if err != nil {
		return sum, err
	}
	for _, id := range ids {
		s, err := t.stats(ctx, id)
		if err != nil {
			return sum, err
		}
		sum = stats{sum.Rx + s.Rx, sum.Tx + s.Tx, sum.RxBytes + s.RxBytes, sum.TxBytes + s.TxBytes, sum.Missed + s.Missed, sum.RxErr + s.RxErr, sum.TxErr + s.TxErr, sum.NoMbuf + s.NoMbuf}
	}
	return sum, nil
}

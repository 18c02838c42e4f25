package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"plumb/providers"
	"plumb/stages/bench/search"
)

// A path is proved with proofFrames frames each way; it gets proofTries tries, proofPause apart, since the first frames may be lost to
// address learning, a flow cache miss, or a link that is still coming up.
const (
	proofFrames = 32
	proofTries  = 5
	proofPause  = time.Second
)

// prove sends a few frames and looks for them at every hop. The error names the hop where they stopped.
func (r *runner) prove(ctx context.Context, c cell) error {
	r.step("%d bytes: proving the path", c.size)
	for try := 1; ; try++ {
		proofs, err := r.tryProof(ctx, c)
		if err == nil {
			r.out.Proof = mergeProofs(r.out.Proof, proofs)
			return r.keep(record{Proof: proofs})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if try == proofTries {
			r.out.Proof = mergeProofs(r.out.Proof, proofs)
			return fmt.Errorf("%d-byte frames do not get through: %w", c.size, err)
		}
		if err := r.in.Wait(ctx, proofPause); err != nil {
			return err
		}
	}
}

func (r *runner) tryProof(ctx context.Context, c cell) ([]Proof, error) {
	before, err := r.bed.count(ctx)
	if err != nil {
		return nil, err
	}
	res, err := r.gen.Trial(ctx, point{cell: c, ask: search.Ask{Frames: proofFrames}}.request(r.set.traffic, r.set.drain))
	if err != nil {
		return nil, fmt.Errorf("send %d frames: %w", proofFrames, err)
	}
	after, err := r.bed.count(ctx)
	if err != nil {
		return nil, err
	}
	gained, backwards := moved(r.bed.names, before, after)
	if len(backwards) > 0 {
		return nil, fmt.Errorf("%s", backwards[0])
	}
	if len(res.Directions) != len(r.routes) {
		return nil, fmt.Errorf("the generator reported %d directions of %d", len(res.Directions), len(r.routes))
	}
	var out []Proof
	for i, rt := range r.routes {
		out = append(out, rt.proof(c.size, res.Directions[i], gained))
	}
	for i, rt := range r.routes {
		if err := rt.stopped(r.out.Generator, out[i], gained); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (r route) proof(size int, d providers.Direction, moved []providers.Counters) Proof {
	p := Proof{FrameSize: size, Direction: r.direction, Sent: d.Sent}
	for _, h := range r.hops {
		p.Seen = append(p.Seen, h.seen(moved))
	}
	p.Seen = append(p.Seen, d.Received)
	return p
}

// stopped says where the frames of a proof stopped; nil: some came through all hops.
func (r route) stopped(generator string, p Proof, moved []providers.Counters) error {
	if p.Sent == 0 {
		return fmt.Errorf("%s sent none of the %d frames that prove the path", generator, proofFrames)
	}
	last, n := generator, p.Sent
	for i, seen := range p.Seen {
		name, dropped := generator, ""
		if i < len(r.hops) {
			h := r.hops[i]
			name = h.name
			dropped = list(causes(h.role, moved[h.subject].Drops))
			if seen == 0 && h.role == Through && moved[h.subject].Rx > 0 {
				return fmt.Errorf("%s took in %d frames and sent none on%s", name, moved[h.subject].Rx, dropped)
			}
		}
		if seen == 0 {
			return fmt.Errorf("they stopped between %s (%d of %d seen) and %s (none)%s", last, n, p.Sent, name, dropped)
		}
		last, n = name, seen
	}
	return nil
}

func list(causes map[string]uint64) string {
	if len(causes) == 0 {
		return ""
	}
	var parts []string
	for _, k := range sortedKeys(causes) {
		parts = append(parts, fmt.Sprintf("%s %d", k, causes[k]))
	}
	return "; it names as dropped: " + strings.Join(parts, ", ")
}

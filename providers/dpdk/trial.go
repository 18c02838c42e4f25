package dpdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plumb/providers"
)

// fcs is what a frame size has and testpmd's txonly does not count (IEEE 802.3).
const fcs = 4

// Trial sends a stream, or just a few frames, and counts what comes back.
func (r *rig) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	if err := errors.Join(checkTraffic(req.Traffic, req.Load), checkTrial(req)); err != nil {
		return providers.TrialResult{}, err
	}
	if err := r.reshape(ctx, req.Traffic); err != nil {
		return providers.TrialResult{}, err
	}
	senders := []*side{r.tx}
	if req.Bidirectional {
		senders = append(senders, r.rx)
	}
	if err := r.prepare(ctx, req, senders); err != nil {
		return providers.TrialResult{}, err
	}
	before, err := r.counters(ctx)
	if err != nil {
		return providers.TrialResult{}, err
	}
	took, unsent, err := r.stream(ctx, req, senders)
	if err != nil {
		return providers.TrialResult{}, errors.Join(err, r.halt(context.WithoutCancel(ctx)))
	}
	after, err := r.counters(ctx)
	if err != nil {
		return providers.TrialResult{}, err
	}
	if err := r.halt(ctx); err != nil {
		return providers.TrialResult{}, err
	}
	return result(req, before, after, took, unsent), nil
}

// prepare tells both what to do. The receiver runs before the sender does.
func (r *rig) prepare(ctx context.Context, req providers.TrialRequest, senders []*side) error {
	mode := "txonly"
	length := req.FrameSize - fcs
	if req.Frames == 0 && (req.Flows > 1 || req.Bidirectional) {
		mode, length = "flowgen", req.FrameSize // flowgen takes the FCS off itself
	}
	if req.Frames > 0 {
		mode = "rxonly" // the few frames are sent by "start tx_first"; afterwards it must not send back what it receives
	}
	for _, s := range senders {
		lines := []string{"set fwd " + mode, fmt.Sprintf("set txpkts %d", length)}
		if mac := req.DstMAC; mac != "" && s == r.tx {
			lines = append(lines, "set eth-peer 0 "+mac)
		}
		for _, l := range lines {
			if _, err := s.order(ctx, l); err != nil {
				return err
			}
		}
	}
	if req.Bidirectional {
		return nil
	}
	for _, l := range []string{"set fwd rxonly", "start"} {
		if _, err := r.rx.order(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// stream sends, and drains. took is between the moments at which start and stop were typed.
func (r *rig) stream(ctx context.Context, req providers.TrialRequest, senders []*side) (took time.Duration, lost []uint64, err error) {
	start := "start"
	if req.Frames > 0 {
		burst := largestDivisor(req.Frames, 512)
		for _, s := range senders {
			if _, err := s.order(ctx, fmt.Sprintf("set burst %d", burst)); err != nil {
				return 0, nil, err
			}
		}
		start = fmt.Sprintf("start tx_first %d", req.Frames/burst)
	}
	began := make([]int, len(senders))
	for i, s := range senders {
		text, _, err := s.Log(ctx)
		if err != nil {
			return 0, nil, err
		}
		began[i] = len(text)
	}
	var first time.Time
	for _, s := range senders {
		if err := s.say(ctx, start); err != nil {
			return 0, nil, err
		}
		if first.IsZero() {
			first = r.now.now()
		}
	}
	if req.Frames == 0 {
		if err := r.now.wait(ctx, req.Duration-r.now.now().Sub(first)); err != nil {
			return 0, nil, err
		}
	}
	// With a count, the frames are on their way before the prompt is back.
	for i, s := range senders {
		if req.Frames > 0 {
			if _, err := s.answer(ctx, began[i], start); err != nil {
				return 0, nil, err
			}
			continue
		}
		if err := s.say(ctx, "stop"); err != nil {
			return 0, nil, err
		}
		if i == 0 {
			took = r.now.now().Sub(first)
		}
	}
	if req.Frames > 0 {
		took = r.now.now().Sub(first)
	}
	if req.Frames == 0 {
		for i, s := range senders {
			out, err := s.answer(ctx, began[i], "stop")
			if err != nil {
				return 0, nil, err
			}
			n, _ := txDropped(out)
			lost = append(lost, n)
		}
	}
	if err := r.now.wait(ctx, req.Drain); err != nil {
		return 0, nil, err
	}
	return took, lost, nil
}

// halt stops whatever still runs, so that nothing spins between trials, and takes back what a count of frames has set.
func (r *rig) halt(ctx context.Context) error {
	var errs []error
	for _, s := range []*side{r.tx, r.rx} {
		for _, l := range []string{"stop", fmt.Sprintf("set burst %d", s.spec.burst)} {
			if _, err := s.order(ctx, l); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// counted is one reading of both ports.
type counted struct{ tx, rx stats }

func (r *rig) counters(ctx context.Context) (counted, error) {
	var c counted
	for _, s := range []struct {
		side *side
		into *stats
	}{{r.tx, &c.tx}, {r.rx, &c.rx}} {
		got, _, err := sumPorts(ctx, s.side.Conn, s.side.spec.prefix)
		if err != nil {
			return c, fmt.Errorf("count frames of the generator: %w", err)
		}
		*s.into = got
	}
	return c, nil
}

// result is the difference of two readings.
func result(req providers.TrialRequest, before, after counted, took time.Duration, lost []uint64) providers.TrialResult {
	res := providers.TrialResult{Duration: took}
	add := func(name string, out, outWas, in, inWas stats, i int) {
		d := providers.Direction{}
		back := func(now, was uint64) uint64 {
			if now < was {
				res.Health = append(res.Health, fmt.Sprintf("a counter of the generator went backwards (%s): %d, then %d", name, was, now))
				return 0
			}
			return now - was
		}
		d.Sent, d.Received = back(out.Tx, outWas.Tx), back(in.Rx, inWas.Rx)
		d.RxDrops = back(in.Missed+in.NoMbuf+in.RxErr, inWas.Missed+inWas.NoMbuf+inWas.RxErr)
		if i < len(lost) {
			d.Unsent = lost[i]
		}
		if req.Frames > 0 && d.Sent < uint64(req.Frames) {
			d.Unsent = uint64(req.Frames) - d.Sent
		}
		if d.Sent == 0 {
			res.Health = append(res.Health, fmt.Sprintf("%s sent nothing: its port did not take a frame", name))
		}
		res.Directions = append(res.Directions, d)
	}
	add("the sender", after.tx, before.tx, after.rx, before.rx, 0)
	if req.Bidirectional {
		add("the receiver", after.rx, before.rx, after.tx, before.tx, 1)
	}
	return res
}

// largestDivisor of n that is at most limit.
func largestDivisor(n, limit int) int {
	for d := min(n, limit); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

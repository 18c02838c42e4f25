package vhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// probe is a frame of the port's own, on its way in one queue.
type probe struct {
	pending bool
	was     []byte // what the slot held
	slot    []byte
}

const (
	probeLen = minFrame
	// probeType is for experiments within one network (IEEE 802 local experimental EtherType 1).
	probeType = 0x88b5
	probeTick = 5 * time.Millisecond
)

// probeFrame goes from our address to our address: a switch that learns learns it, and has nobody to forward it to.
func probeFrame(b []byte, mac net.HardwareAddr) {
	clear(b)
	copy(b, mac)
	copy(b[6:], mac)
	b[12], b[13] = probeType>>8, probeType&0xff
}

// Ready sends one frame through each queue. It returns at once when the back-end can't do what the port needs, else ctx limits it; it sleeps
// meanwhile. The slots' contents are as before when it succeeds. It uses the queues, so no other thread may.
func (p *attachment) Ready(ctx context.Context) error {
	if err := p.ready(ctx); err != nil {
		return fmt.Errorf("vhost-user port %s: %w", p.cfg.Socket, err)
	}
	return nil
}

func (p *attachment) ready(ctx context.Context) error {
	tick := time.NewTicker(probeTick)
	defer tick.Stop()
	var session *session
	var proved int // queues of session, the first ones, that took a frame
	for {
		state, changed := p.link.look()
		var refused refusal
		switch {
		case p.closed.Load():
			return net.ErrClosed
		case errors.As(state.why, &refused):
			return refused
		case state.session == nil:
			select {
			case <-ctx.Done():
				return absent(ctx.Err(), state)
			case <-changed:
			}
			continue
		case state.session != session:
			session, proved = state.session, 0
			for _, q := range p.rx {
				q.follow() // gives it the buffers
			}
		}
		for proved < len(p.tx) && p.tx[proved].probed(p.cfg.MAC) {
			proved++
		}
		if proved == len(p.tx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the back-end is connected and does not take a frame from queue %d: is its port in a bridge, and does a thread poll it: %w", proved, ctx.Err())
		case <-changed:
		case <-tick.C:
		}
	}
}

func absent(err error, s linkState) error {
	if s.why != nil {
		return fmt.Errorf("no back-end is connected (%w): %w", s.why, err)
	}
	return fmt.Errorf("no back-end has connected: %w", err)
}

// probed sends a probe, or says whether the one on its way was taken. One that was lost with its connection is sent again.
func (q *txQueue) probed(mac net.HardwareAddr) bool {
	q.follow()
	if q.probe.pending && q.Pending() > 0 {
		return false
	}
	if q.probe.slot != nil {
		taken := q.probe.pending
		copy(q.probe.slot, q.probe.was)
		q.probe = probe{}
		if taken {
			return true
		}
	}
	if q.Pending() > 0 {
		return false // a stream's frames: what comes after them is taken later still
	}
	slots := q.Reserve(1)
	if len(slots) == 0 {
		return false
	}
	s := &slots[0]
	q.probe = probe{pending: true, slot: s.Buf[:probeLen], was: append([]byte(nil), s.Buf[:probeLen]...)}
	probeFrame(q.probe.slot, mac)
	s.Len = probeLen
	q.Submit(1)
	if err := q.Flush(); err != nil {
		q.session.fail(err)
	}
	return false
}

package vhost

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Feature bits: virtio 1.2, sections 5.1.3 and 6; vhost-user.rst.
const (
	featureMergeable = 1 << 15 // VIRTIO_NET_F_MRG_RXBUF: a frame may span receive buffers
	featureMQ        = 1 << 22 // VIRTIO_NET_F_MQ: more than one pair of queues
	featureProtocol  = 1 << 30 // VHOST_USER_F_PROTOCOL_FEATURES
	featureVersion1  = 1 << 32 // VIRTIO_F_VERSION_1: little endian, header of 12 bytes
	featureInOrder   = 1 << 35 // VIRTIO_F_IN_ORDER

	protocolMQ     = 1 << 0  // GET_QUEUE_NUM
	protocolAck    = 1 << 3  // REPLY_ACK: every message is answered if we ask
	protocolStatus = 1 << 16 // SET_STATUS, GET_STATUS
)

// Bits of the device status: virtio 1.2, section 2.1.
const (
	statusAcknowledge = 1
	statusDriver      = 2
	statusDriverOK    = 4
	statusFeaturesOK  = 8
)

// refusal is that a back-end can't do what is needed: trying again doesn't help.
type refusal struct{ why string }

func (r refusal) Error() string { return r.why }

// peer is the back-end at the other end of a connection.
type peer struct {
	conn     *net.UnixConn
	timeout  time.Duration
	until    time.Time // all of what is still to be said must be said by then; zero: no limit but timeout
	ack      bool      // it answers everything
	status   bool      // it knows the device status
	switches bool      // rings have to be enabled, because VHOST_USER_F_PROTOCOL_FEATURES was agreed on
}

func (p *peer) deadline() error {
	at := time.Now().Add(p.timeout)
	if !p.until.IsZero() && p.until.Before(at) {
		at = p.until
	}
	return p.conn.SetDeadline(at)
}

func (p *peer) send(r request, flags uint32, payload []byte, fds []int) error {
	if err := p.deadline(); err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_, _, err := p.conn.WriteMsgUnix(appendMessage(nil, r, flags, payload), oob, nil)
	return ended(err)
}

// get asks for a value. File descriptors that come with an answer are closed by the kernel, because we read without room for them.
func (p *peer) get(r request, payload []byte) (uint64, error) {
	err := p.send(r, 0, payload, nil)
	if err != nil {
		return 0, p.describe(r, err)
	}
	v, err := readReply(p.conn, r)
	return v, p.describe(r, err)
}

// set gives a value, and finds out whether it was taken if the back-end says so.
func (p *peer) set(r request, payload []byte, fds ...int) error {
	flags := uint32(0)
	if p.ack {
		flags = flagNeedReply
	}
	if err := p.send(r, flags, payload, fds); err != nil || !p.ack {
		return p.describe(r, err)
	}
	v, err := readReply(p.conn, r)
	if err == nil && v != 0 {
		err = fmt.Errorf("the back-end answered %d instead of success", v)
	}
	return p.describe(r, err)
}

func (p *peer) describe(r request, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%v: the back-end did not answer in %v: is it busy, or its main thread without a CPU?", r, p.timeout)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	return nil
}

// negotiate agrees on features, and returns them. Errors are refusals if trying again can't help.
func (p *peer) negotiate(queues int) (uint64, error) {
	if err := p.set(setOwner, nil); err != nil {
		return 0, err
	}
	offered, err := p.get(getFeatures, nil)
	if err != nil {
		return 0, err
	}
	want := uint64(featureVersion1 | featureMergeable | featureInOrder | featureProtocol)
	if queues > 1 {
		want |= featureMQ
	}
	agreed := want & offered
	switch {
	case agreed&featureVersion1 == 0:
		return 0, refusal{fmt.Sprintf("the back-end offers features %#x without VIRTIO_F_VERSION_1 (bit 32): legacy virtio is not supported", offered)}
	case queues > 1 && agreed&featureMQ == 0:
		return 0, refusal{fmt.Sprintf("the back-end offers features %#x without VIRTIO_NET_F_MQ (bit 22): it has one pair of queues and not %d", offered, queues)}
	}
	if agreed&featureProtocol == 0 && queues > 1 {
		return 0, refusal{fmt.Sprintf("the back-end offers features %#x without VHOST_USER_F_PROTOCOL_FEATURES (bit 30): it can't enable %d pairs of queues", offered, queues)}
	}
	if agreed&featureProtocol != 0 {
		if err := p.protocol(queues); err != nil {
			return 0, err
		}
	}
	if err := p.setStatus(0, statusAcknowledge, statusAcknowledge|statusDriver); err != nil {
		return 0, err
	}
	if err := p.set(setFeatures, number(agreed)); err != nil {
		return 0, err
	}
	if err := p.setStatus(statusAcknowledge | statusDriver | statusFeaturesOK); err != nil || !p.status {
		return agreed, err
	}
	status, err := p.get(getStatus, nil)
	if err != nil {
		return 0, err
	}
	if status&statusFeaturesOK == 0 {
		return 0, refusal{fmt.Sprintf("the back-end does not take features %#x (status %#x)", agreed, status)}
	}
	return agreed, nil
}

// protocol agrees on features of the protocol.
func (p *peer) protocol(queues int) error {
	p.switches = true
	offered, err := p.get(getProtocolFeatures, nil)
	if err != nil {
		return err
	}
	agreed := offered & (protocolMQ | protocolAck | protocolStatus)
	if err := p.set(setProtocolFeatures, number(agreed)); err != nil {
		return err
	}
	p.ack, p.status = agreed&protocolAck != 0, agreed&protocolStatus != 0
	has := uint64(1)
	if agreed&protocolMQ != 0 {
		if has, err = p.get(getQueueNum, nil); err != nil {
			return err
		}
	}
	if has < uint64(queues) {
		return refusal{fmt.Sprintf("the back-end has %d pairs of queues and not %d", has, queues)}
	}
	return nil
}

// setStatus sets one device status after the other, if the back-end knows that at all.
func (p *peer) setStatus(status ...uint64) error {
	for _, s := range status {
		if !p.status {
			return nil
		}
		if err := p.set(setStatus, number(s)); err != nil {
			return err
		}
	}
	return nil
}

// attach gives the back-end our memory and rings, and starts it. When it returns, the back-end has handled all of it.
func (p *peer) attach(frames *memory, s *session) error {
	regions := []region{regionOf(frames, frameGuest), regionOf(s.memory, ringGuest)}
	if err := p.set(setMemTable, memTable(regions), frames.fd, s.memory.fd); err != nil {
		return err
	}
	rings := s.rings()
	for i, r := range rings {
		avail, used, _ := ringLayout(int(r.size))
		at := func(offset int) uint64 { return ringGuest + userOffset + uint64(s.bases[i]+offset) }
		err := firstOf(
			func() error { return p.set(setVringNum, vringState(i, uint32(r.size))) },
			func() error { return p.set(setVringBase, vringState(i, 0)) },
			func() error { return p.set(setVringAddr, vringAddr(i, at(0), at(used), at(avail))) },
			func() error { return p.set(setVringCall, number(uint64(i)), s.calls[i]) },
			func() error { return p.set(setVringKick, number(uint64(i)), r.kick) },
		)
		if err != nil {
			return fmt.Errorf("ring %d: %w", i, err)
		}
	}
	if err := p.enable(len(rings), 1); err != nil {
		return err
	}
	if err := p.setStatus(statusAcknowledge | statusDriver | statusFeaturesOK | statusDriverOK); err != nil {
		return err
	}
	// A ring starts with its first kick (vhost-user.rst, "Ring states").
	for _, r := range rings {
		if err := notify(r.kick, &r.one); err != nil {
			return err
		}
	}
	if p.ack {
		return nil
	}
	_, err := p.get(getFeatures, nil) // messages are handled in order: an answer to this one says that the others are done
	return err
}

func (p *peer) enable(rings int, on uint32) error {
	for i := 0; i < rings && p.switches; i++ {
		if err := p.set(setVringEnable, vringState(i, on)); err != nil {
			return fmt.Errorf("ring %d: %w", i, err)
		}
	}
	return nil
}

// detach stops the back-end in order, so that it does not touch our memory any more.
func (p *peer) detach(rings int) error {
	if err := p.enable(rings, 0); err != nil {
		return err
	}
	for i := range rings {
		if _, err := p.get(getVringBase, vringState(i, 0)); err != nil {
			return fmt.Errorf("ring %d: %w", i, err)
		}
	}
	return nil
}

func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

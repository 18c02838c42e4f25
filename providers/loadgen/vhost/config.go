// Package vhost is a load generator's port at a vhost-user socket: the driver side of virtio-net (the front-end in vhost-user's words, what a
// virtual machine would be), in Go without cgo. The device under test is the back-end.
//
// Start reading at Config and Open. split.go is the virtqueue (virtio 1.2, section 2.7), pure over a slice of bytes; tx.go and rx.go are what
// the hot loop calls; message.go and handshake.go are the protocol (QEMU's docs/interop/vhost-user.rst); link.go connects, and again when the
// back-end was restarted.
//
// Two memory regions are shared. The frames' one lasts as long as the port, so a slot keeps its contents whatever becomes of the back-end. The
// rings' one is made anew for each connection: a back-end that lingers after its connection broke can't disturb the next one. A queue moves to
// the new rings in its own thread, when that calls it next: nothing on the hot path waits or locks.
//
// Not there: packed rings (the back-end's core is what limits, and split rings are the better tried path of every back-end), notification
// by the back-end (we poll; VIRTIO_F_EVENT_IDX isn't negotiated, the flags of the rings suppress it), offloads, live migration, the back-end's
// request channel.
package vhost

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/bits"
	"net"
	"time"
)

// Config of a port. The zero value of everything but Socket has a meaning.
type Config struct {
	Socket string // path of the UNIX socket, at most 107 bytes
	// Server says who owns the socket. True: we make it and listen (Open vSwitch's dpdkvhostuserclient, DPDK's net_vhost with client=1). Close
	// removes it. A socket that a dead process left is replaced, one that somebody listens on is an error. False: we connect (dpdkvhostuser),
	// and try again as long as nobody listens there; the socket is never touched.
	Server bool
	Mode   fs.FileMode // permission bits of our socket, for a back-end of another user; 0: what the umask leaves. Only with Server.

	Queues int // pairs of queues, 1 to 128; 0: 1
	// RxSize and TxSize are the entries of each ring and the frames that it holds: powers of two, 2 to 32768; 0: 4096 and 1024. A long RxSize
	// bridges the times in which the tester's thread does not run, at the price of latency when it does not.
	RxSize, TxSize int
	MaxFrame       int              // bytes without FCS, 60 to 65535; 0: 1514
	MAC            net.HardwareAddr // the tester's; nil: a locally administered one that depends on Socket only
	Hugepages      bool             // frames in hugepages of the default size instead of normal pages
	Timeout        time.Duration    // for the back-end's answer to one message; 0: 10 s
}

const (
	maxRing   = 32768 // virtio 1.2, 2.7: Queue Size
	maxQueues = 128   // RTE_MAX_QUEUES_PER_PORT and VHOST_MAX_QUEUE_PAIRS of DPDK
	maxPath   = 107   // sun_path of unix(7), without its NUL
	minFrame  = 60    // Ethernet's 64 without FCS
)

// filled is c with its defaults, or what is wrong with it.
func (c Config) filled() (Config, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Queues, 1)
	def(&c.RxSize, 4096)
	def(&c.TxSize, 1024)
	def(&c.MaxFrame, 1514)
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	switch {
	case c.Socket == "":
		return c, errors.New("no socket is given")
	case len(c.Socket) > maxPath:
		return c, fmt.Errorf("the path is %d bytes long: a UNIX socket's path may have %d", len(c.Socket), maxPath)
	case c.Mode&^fs.ModePerm != 0:
		return c, fmt.Errorf("mode %v has more than permission bits", c.Mode)
	case c.Mode != 0 && !c.Server:
		return c, errors.New("a mode is for a socket of our own, and this one is the other side's")
	case c.Queues < 1 || c.Queues > maxQueues:
		return c, fmt.Errorf("%d queue pairs: possible are 1 to %d", c.Queues, maxQueues)
	case !ringSize(c.RxSize):
		return c, fmt.Errorf("a receive ring of %d: a power of two from 2 to %d is needed", c.RxSize, maxRing)
	case !ringSize(c.TxSize):
		return c, fmt.Errorf("a transmit ring of %d: a power of two from 2 to %d is needed", c.TxSize, maxRing)
	case c.MaxFrame < minFrame || c.MaxFrame > 65535:
		return c, fmt.Errorf("frames of up to %d bytes: possible are %d to 65535", c.MaxFrame, minFrame)
	case c.Timeout < 0:
		return c, fmt.Errorf("a negative time limit: %v", c.Timeout)
	}
	switch {
	case c.MAC == nil:
		c.MAC = localMAC(c.Socket)
	case len(c.MAC) != 6 || c.MAC[0]&1 != 0:
		return c, fmt.Errorf("%v is no address of one Ethernet station", c.MAC)
	}
	return c, nil
}

func ringSize(n int) bool { return n >= 2 && n <= maxRing && bits.OnesCount(uint(n)) == 1 }

// localMAC is the same for the same socket, so that two runs send the same frames.
func localMAC(socket string) net.HardwareAddr {
	h := fnv.New64a()
	h.Write([]byte(socket))
	mac := net.HardwareAddr(h.Sum(nil)[:6])
	mac[0] = mac[0]&^1 | 2 // IEEE 802: one station, locally administered
	return mac
}

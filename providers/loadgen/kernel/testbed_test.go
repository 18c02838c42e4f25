package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

// real ends a test that was not asked for.
func real(tb testing.TB) {
	tb.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		tb.Skip("PLUMB_REAL is not set: needs root and network namespaces")
	}
	if os.Geteuid() != 0 {
		tb.Fatal("needs root")
	}
}

// run runs a command in a namespace; "": here.
func run(tb testing.TB, netns string, args ...string) string {
	tb.Helper()
	if netns != "" {
		args = append([]string{"ip", "netns", "exec", netns}, args...)
	}
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// namespace makes one and removes it after the test, with the interfaces in it.
func namespace(tb testing.TB, name string) string {
	tb.Helper()
	name = fmt.Sprintf("plg-kernel-%d-%s", os.Getpid(), name)
	run(tb, "", "ip", "netns", "add", name)
	tb.Cleanup(func() { run(tb, "", "ip", "netns", "del", name) })
	run(tb, name, "ip", "link", "set", "lo", "up")
	run(tb, name, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
	return name
}

// end is one end of a path: an interface in a namespace.
type end struct{ netns, name string }

// veth makes a pair between two ends.
func veth(tb testing.TB, a, b end, mtu, queues int) {
	tb.Helper()
	q := fmt.Sprint(queues)
	run(tb, a.netns, "ip", "link", "add", a.name, "mtu", fmt.Sprint(mtu), "numtxqueues", q, "numrxqueues", q, "type", "veth",
		"peer", "name", b.name, "mtu", fmt.Sprint(mtu), "numtxqueues", q, "numrxqueues", q, "netns", b.netns)
	for _, e := range []end{a, b} {
		run(tb, e.netns, "ip", "link", "set", e.name, "up")
	}
}

// pair is two namespaces joined by a veth pair.
func pair(tb testing.TB, mtu, queues int) (a, b end) {
	tb.Helper()
	a, b = end{namespace(tb, "a"), "t0"}, end{namespace(tb, "b"), "t1"}
	veth(tb, a, b, mtu, queues)
	return a, b
}

// bridged is two namespaces with a third between them, in which a bridge joins the two veth pairs.
func bridged(tb testing.TB, mtu int) (a, b end) {
	tb.Helper()
	middle := namespace(tb, "m")
	a, b = end{namespace(tb, "a"), "t0"}, end{namespace(tb, "b"), "t1"}
	run(tb, middle, "ip", "link", "add", "br0", "mtu", fmt.Sprint(mtu), "type", "bridge", "mcast_snooping", "0")
	for i, e := range []end{a, b} {
		dut := end{middle, fmt.Sprint("d", i)}
		veth(tb, e, dut, mtu, 1)
		run(tb, middle, "ip", "link", "set", dut.name, "master", "br0")
	}
	run(tb, middle, "ip", "link", "set", "br0", "up")
	return a, b
}

// opened opens a port and closes it after the test.
func opened(tb testing.TB, e end, cfg Config) *Port {
	tb.Helper()
	cfg.Interface, cfg.Netns = e.name, e.netns
	p, err := Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		tb.Fatal(err)
	}
	return p.(*Port)
}

// testType is an Ethernet type for experiments (IEEE 802): no kernel sends such a frame by itself.
const testType = 0x88b5

// write makes frame number seq: every byte of it depends on the number.
func write(b []byte, seq uint32) {
	copy(b, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0, 0x01}) // to everybody: bridges take it too
	binary.BigEndian.PutUint16(b[12:], testType)
	binary.BigEndian.PutUint32(b[14:], seq)
	for i := 18; i < len(b); i++ {
		b[i] = byte(uint32(i) * (seq + 1))
	}
}

// read checks a frame that came, and says which it is; ok is false for what is no test frame.
func read(b []byte) (seq uint32, ok bool, err error) {
	if len(b) < 18 || binary.BigEndian.Uint16(b[12:]) != testType {
		return 0, false, nil
	}
	seq = binary.BigEndian.Uint32(b[14:])
	for i := 18; i < len(b); i++ {
		if b[i] != byte(uint32(i)*(seq+1)) {
			return seq, true, fmt.Errorf("byte %d of %d of frame %d is wrong", i, len(b), seq)
		}
	}
	return seq, true, nil
}

// transfer sends n frames of the lengths that length gives and receives every one, exactly once, by all queues of both ports. No more than 64
// frames are on their way at a time: a veth holds 256.
func transfer(tb testing.TB, from, to port.Port, n int, length func(seq int) int) {
	tb.Helper()
	seen, idle := make([]bool, n), pollFDs(to)
	deadline := time.Now().Add(20 * time.Second)
	for sent, got := 0, 0; got < n; {
		if time.Now().After(deadline) {
			tb.Fatalf("sent %d, received %d of %d; sender %+v, receiver %+v", sent, got, n, from.Stats(), to.Stats())
		}
		tx := from.Tx(sent / 64 % from.Queues())
		slots := tx.Reserve(min(n-sent, 64-(sent-got)))
		for i := range slots {
			slots[i].Len = length(sent + i)
			write(slots[i].Buf[:slots[i].Len], uint32(sent+i))
		}
		tx.Submit(len(slots))
		sent += len(slots)
		if err := tx.Flush(); err != nil {
			tb.Fatal(err)
		}
		before := got
		for q := range to.Queues() {
			for _, b := range to.Rx(q).Receive(64) {
				seq, ok, err := read(b)
				switch {
				case !ok:
					continue
				case err != nil:
					tb.Fatal(err)
				case int(seq) >= sent || seen[seq]:
					tb.Fatalf("frame %d came which was not sent, or twice", seq)
				case len(b) != length(int(seq)):
					tb.Fatalf("frame %d came with %d bytes, sent with %d", seq, len(b), length(int(seq)))
				}
				seen[seq] = true
				got++
			}
			to.Rx(q).Release()
		}
		if got == before { // the kernel may need this CPU to deliver
			if _, err := unix.Poll(idle, 10); err != nil && !errors.Is(err, unix.EINTR) {
				tb.Fatal(err)
			}
		}
	}
	for q := range from.Queues() {
		if p := from.Tx(q).Pending(); p != 0 {
			tb.Errorf("%d frames are still pending on queue %d", p, q)
		}
	}
	for q := range to.Queues() {
		for _, b := range to.Rx(q).Receive(64) {
			if seq, ok, err := read(b); ok {
				tb.Errorf("frame %d came as surplus (%v)", seq, err)
			}
		}
		to.Rx(q).Release()
	}
	if s := to.Stats(); s.RxDrops != 0 || !s.Up || s.Links != 1 {
		tb.Errorf("receiver's counters: %+v", s)
	}
}

// pollFDs are the sockets that a port receives on.
func pollFDs(p port.Port) (fds []unix.PollFd) {
	switch how := p.(*Port).how.(type) {
	case *xdpPort:
		for _, s := range how.sockets {
			fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
	case *packetPort:
		for _, s := range how.sockets {
			fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
	}
	return fds
}

// untouched fails when an XDP program or promiscuity is left on an interface.
func untouched(tb testing.TB, e end) {
	tb.Helper()
	out := run(tb, e.netns, "ip", "-d", "link", "show", e.name)
	if strings.Contains(out, "xdp") || !strings.Contains(out, "promiscuity 0 ") {
		tb.Errorf("something is left on %s:\n%s", e.name, out)
	}
}

// until waits for a condition.
func until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			tb.Fatal("waited in vain: " + what)
		}
	}
}

package kernel

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ways are those which a veth offers, and what the port says of itself.
var ways = map[string]struct {
	cfg  Config
	says string
}{
	"auto":      {Config{}, "AF_XDP copy, native XDP program, 1 queue; not zero-copy: "},
	"af_xdp":    {Config{Mode: AFXDP, ZeroCopy: Off}, "AF_XDP copy, native XDP program, 1 queue"},
	"af_packet": {Config{Mode: AFPacket}, "AF_PACKET, TPACKET_V2 rings, 1 queue"},
}

func TestRealEveryFrameArrives(t *testing.T) {
	real(t)
	for name, way := range ways {
		for _, size := range []struct{ mtu, longest int }{{1500, 1514}, {9000, 9014}} {
			t.Run(fmt.Sprintf("%s/%d", name, size.longest), func(t *testing.T) {
				a, b := pair(t, size.mtu, 1)
				from, to := opened(t, a, way.cfg), opened(t, b, way.cfg)
				if !strings.HasPrefix(to.Describe(), way.says) {
					t.Errorf("describes itself as %q", to.Describe())
				}
				transfer(t, from, to, 2000, func(seq int) int { return 60 + seq*37%(size.longest-60+1) })
				transfer(t, to, from, 500, func(int) int { return size.longest })
				from.Close()
				to.Close()
				untouched(t, a)
				untouched(t, b)
			})
		}
	}
}

func TestRealTwoQueues(t *testing.T) {
	real(t)
	for _, mode := range []string{AFXDP, AFPacket} {
		t.Run(mode, func(t *testing.T) {
			a, b := pair(t, 1500, 2)
			transfer(t, opened(t, a, Config{Mode: mode, Queues: 2}), opened(t, b, Config{Mode: mode, Queues: 2}), 2000, func(seq int) int { return 60 + seq%1000 })
		})
	}
}

func TestRealThroughBridge(t *testing.T) {
	real(t)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			a, b := bridged(t, 9000)
			transfer(t, opened(t, a, way.cfg), opened(t, b, way.cfg), 1000, func(seq int) int { return 60 + seq*37%8900 })
		})
	}
}

func TestRealTap(t *testing.T) {
	real(t)
	for _, mode := range []string{AFXDP, AFPacket} {
		t.Run(mode, func(t *testing.T) {
			tap := end{namespace(t, "tap"), "tap0"}
			fd := -1
			if err := inNetns(tap.netns, func() (err error) {
				if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
					return err
				}
				req, err := unix.NewIfreq(tap.name)
				if err != nil {
					return err
				}
				req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
				return unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
			}); err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			run(t, tap.netns, "ip", "link", "set", tap.name, "up")
			p := opened(t, tap, Config{Mode: mode})
			tx, rx, buf := p.Tx(0), p.Rx(0), make([]byte, 2048)
			for seq := range uint32(200) {
				slots := tx.Reserve(1)
				slots[0].Len = 60 + int(seq)
				write(slots[0].Buf[:slots[0].Len], seq)
				tx.Submit(1)
				if err := tx.Flush(); err != nil {
					t.Fatal(err)
				}
				n := 0
				until(t, "the frame comes out of the tap", func() bool {
					var err error
					n, err = unix.Read(fd, buf)
					return err == nil && n > 13 && buf[12] == testType>>8
				})
				if got, _, err := read(buf[:n]); err != nil || got != seq || n != 60+int(seq) {
					t.Fatalf("frame %d of %d bytes came out: %v", got, n, err)
				}
				if _, err := unix.Write(fd, buf[:n]); err != nil {
					t.Fatal(err)
				}
				until(t, "the frame comes back", func() bool {
					for _, b := range rx.Receive(8) {
						if got, ok, err := read(b); ok {
							if err != nil || got != seq || len(b) != 60+int(seq) {
								t.Fatalf("frame %d of %d bytes came back: %v", got, len(b), err)
							}
							rx.Release()
							return true
						}
					}
					rx.Release()
					return false
				})
			}
		})
	}
}

// A bridge as an interface has no XDP in its driver.
func TestRealGenericXDP(t *testing.T) {
	real(t)
	a, b := pair(t, 9000, 1)
	run(t, b.netns, "ip", "link", "add", "br0", "mtu", "9000", "type", "bridge", "mcast_snooping", "0")
	run(t, b.netns, "ip", "link", "set", b.name, "master", "br0")
	run(t, b.netns, "ip", "link", "set", "br0", "up")
	br := end{b.netns, "br0"}
	from, to := opened(t, a, Config{}), opened(t, br, Config{Mode: AFXDP})
	if !strings.HasPrefix(to.Describe(), "AF_XDP copy, generic XDP program, 1 queue; not native XDP: ") {
		t.Errorf("describes itself as %q", to.Describe())
	}
	transfer(t, from, to, 1000, func(seq int) int { return 60 + seq*37%8900 })
	transfer(t, to, from, 1000, func(seq int) int { return 60 + seq*37%8900 })
	to.Close()
	untouched(t, br)
}

func TestRealKernelKeepsItsNeighbours(t *testing.T) {
	real(t)
	a, b := pair(t, 1500, 1)
	run(t, a.netns, "ip", "addr", "add", "192.0.2.1/24", "dev", a.name)
	run(t, b.netns, "ip", "addr", "add", "192.0.2.2/24", "dev", b.name)
	to := opened(t, b, Config{Mode: AFXDP})
	run(t, a.netns, "bash", "-c", "echo >/dev/udp/192.0.2.2/9")
	var got [][]byte
	until(t, "the datagram goes to the tester", func() bool {
		got = to.Rx(0).Receive(10)
		return len(got) > 0
	})
	if len(got) != 1 || got[0][12] != 0x08 || got[0][13] != 0 {
		t.Errorf("the tester received %x instead of one datagram", got)
	}
	if out := run(t, a.netns, "ip", "neigh", "show", "192.0.2.2"); !strings.Contains(out, to.MAC().String()) {
		t.Errorf("ARP was not answered: %s", out)
	}
}

func TestRealLinkGoesDown(t *testing.T) {
	real(t)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, 1500, 1)
			from, to := opened(t, a, way.cfg), opened(t, b, way.cfg)
			transfer(t, from, to, 500, func(int) int { return 60 })
			run(t, a.netns, "ip", "link", "set", a.name, "down")
			tx := from.Tx(0)
			for range 3 { // as a hot loop would go on
				slots := tx.Reserve(32)
				for i := range slots {
					slots[i].Len = 60
					write(slots[i].Buf[:60], uint32(i))
				}
				tx.Submit(len(slots))
				if err := tx.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if tx.Pending() != 96 {
				t.Errorf("%d of 96 frames are pending on an interface that is down", tx.Pending())
			}
			if s := from.Stats(); s.Up || s.Links != 2 {
				t.Errorf("counters when down: %+v", s)
			}
			run(t, a.netns, "ip", "link", "set", a.name, "up")
			if err := from.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := from.Stats(); !s.Up || s.Links != 3 {
				t.Errorf("counters when up again: %+v", s)
			}
			until(t, "pending frames go out", func() bool {
				if err := tx.Flush(); err != nil {
					t.Fatal(err)
				}
				return tx.Pending() == 0
			})
			run(t, a.netns, "ip", "link", "del", a.name)
			for _, slot := range tx.Reserve(1) {
				write(slot.Buf[:60], 0)
			}
			tx.Submit(1)
			if err := tx.Flush(); err == nil || !strings.Contains(err.Error(), "the interface is gone") {
				t.Errorf("sending on an interface that is gone: %v", err)
			}
			if s := from.Stats(); s.Up {
				t.Errorf("counters of an interface that is gone: %+v", s)
			}
			if err := from.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRealReceiverDropsAreCounted(t *testing.T) {
	real(t)
	for _, mode := range []string{AFXDP, AFPacket} {
		t.Run(mode, func(t *testing.T) {
			a, b := pair(t, 1500, 1)
			from, to := opened(t, a, Config{Mode: mode}), opened(t, b, Config{Mode: mode, RxSize: 64})
			tx := from.Tx(0)
			for range 20 {
				slots := tx.Reserve(10)
				for i := range slots {
					slots[i].Len = 60
					write(slots[i].Buf[:60], 0)
				}
				tx.Submit(len(slots))
				if err := tx.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			until(t, "200 frames are in the ring or dropped", func() bool { return to.Stats().RxDrops == 200-64 })
			if got := len(to.Rx(0).Receive(1000)); got != 64 {
				t.Errorf("received %d of 64", got)
			}
		})
	}
}

func TestRealVLANTagsAreKept(t *testing.T) {
	real(t)
	a, b := bridged(t, 1500)
	from, to := opened(t, a, Config{Tagged: true}), opened(t, b, Config{Tagged: true})
	if !strings.Contains(to.Describe(), "AF_PACKET") || !strings.Contains(to.Describe(), "beside the frame") {
		t.Errorf("describes itself as %q", to.Describe())
	}
	tx := from.Tx(0)
	frame := tx.Reserve(1)
	write(frame[0].Buf[:68], 7)
	copy(frame[0].Buf[12:], []byte{0x88, 0xa8, 0x20, 0x64, 0x81, 0x00, 0x00, 0xc8, 0x88, 0xb5}) // QinQ: 100 with priority 1, 200
	frame[0].Len = 68
	want := string(frame[0].Buf[:68])
	tx.Submit(1)
	if err := tx.Flush(); err != nil {
		t.Fatal(err)
	}
	until(t, "the tagged frame comes", func() bool {
		for _, b := range to.Rx(0).Receive(10) {
			if string(b) == want {
				return true
			}
		}
		to.Rx(0).Release()
		return false
	})
}

func TestRealErrorsOfOpen(t *testing.T) {
	real(t)
	a, b := pair(t, 1500, 2)
	tests := map[string]struct {
		cfg  Config
		says string
	}{
		"missing":             {Config{Interface: "nosuch0", Netns: a.netns}, "there is no nosuch0 here, only lo, t0"},
		"wrong namespace":     {Config{Interface: b.name, Netns: a.netns}, "is it in another network namespace?"},
		"no namespace":        {Config{Interface: a.name, Netns: "plg-nosuch"}, "there is no network namespace /run/netns/plg-nosuch"},
		"no namespace at all": {Config{Interface: a.name, Netns: "/proc/self/ns/uts"}, "is not a network namespace"},
		"no zero-copy":        {Config{Interface: a.name, Netns: a.netns, ZeroCopy: On, Queues: 2}, "zero-copy: queue 0: bind the socket: operation not supported"},
		"queues":              {Config{Interface: a.name, Netns: a.netns, Mode: AFXDP}, "receives on 2 queues and 1 are wanted: set queues = 2"},
		"MTU":                 {Config{Interface: a.name, Netns: a.netns, MaxFrame: 9000}, "do not fit its MTU of 1500: set the MTU to 8986"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Open(t.Context(), test.cfg)
			if err == nil {
				p.Close()
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("says %q instead of %q", err, test.says)
			}
			untouched(t, a)
		})
	}

	t.Run("taken", func(t *testing.T) {
		opened(t, a, Config{Mode: AFXDP, Queues: 2})
		if _, err := Open(t.Context(), Config{Interface: a.name, Netns: a.netns, Mode: AFXDP, Queues: 2}); err == nil || !strings.Contains(err.Error(), "has an XDP program already") {
			t.Errorf("second port on an interface: %v", err)
		}
	})
	t.Run("no carrier", func(t *testing.T) {
		run(t, b.netns, "ip", "link", "set", b.name, "down")
		p, err := Open(t.Context(), Config{Interface: a.name, Netns: a.netns, Mode: AFPacket})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := p.Ready(ctx); err == nil || !strings.Contains(err.Error(), "has no carrier") {
			t.Errorf("ready without a carrier: %v", err)
		}
	})
	t.Run("down", func(t *testing.T) {
		run(t, a.netns, "ip", "link", "set", a.name, "down")
		if _, err := Open(t.Context(), Config{Interface: a.name, Netns: a.netns}); err == nil || !strings.Contains(err.Error(), "it is down: ip link set t0 up") {
			t.Errorf("interface that is down: %v", err)
		}
	})
}

func TestRealProgramChoosesFrames(t *testing.T) {
	real(t)
	sockets, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sockets.Close()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := sockets.Put(uint32(0), uint32(fd)); err != nil {
		t.Fatal(err)
	}
	program, err := ebpf.NewProgram(redirectProgram(sockets.FD(), false))
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer program.Close()

	const pass, redirect = 2, 4 // XDP_PASS, XDP_REDIRECT
	const somebody = "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"
	ip6 := func(next string) string { return somebody + "\x86\xdd\x60\x00\x00\x00\x00\x20" + next }
	tests := map[string]struct {
		frame string
		want  uint32
	}{
		"IPv4":                   {somebody + "\x08\x00", redirect},
		"experimental":           {somebody + "\x88\xb5", redirect},
		"VLAN":                   {somebody + "\x81\x00\x00\x64\x08\x06", redirect},
		"ARP":                    {somebody + "\x08\x06", pass},
		"IPv6 UDP":               {ip6("\x11"), redirect},
		"IPv6 TCP":               {ip6("\x06"), redirect},
		"neighbour discovery":    {ip6("\x3a"), pass},
		"MLD":                    {ip6("\x00"), pass},
		"LLDP":                   {"\x01\x80\xc2\x00\x00\x0e" + somebody[6:] + "\x88\xcc", pass},
		"STP":                    {"\x01\x80\xc2\x00\x00\x00" + somebody[6:] + "\x00\x26", pass},
		"not quite link-local":   {"\x01\x80\xc2\x00\x01\x00" + somebody[6:] + "\x08\x00", redirect},
		"broadcast that is IPv4": {"\xff\xff\xff\xff\xff\xff" + somebody[6:] + "\x08\x00", redirect},
	}
	for name, test := range tests {
		frame := append([]byte(test.frame), make([]byte, 64-len(test.frame))...)
		got, _, err := program.Test(frame)
		if err != nil || got != test.want {
			t.Errorf("%s: %d (%v), want %d", name, got, err, test.want)
		}
	}
	if got, _, err := program.Test([]byte(ip6("\x3a"))[:20]); err != nil || got != redirect {
		t.Errorf("IPv6 that is cut off: %d (%v)", got, err)
	}
	if err := sockets.Delete(uint32(0)); err != nil {
		t.Fatal(err)
	}
	if got, _, err := program.Test(make([]byte, 64)); err != nil || got != pass {
		t.Errorf("without a socket: %d (%v)", got, err)
	}
}

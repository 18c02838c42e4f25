package vhost

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

const limit = time.Minute // of every wait for something that is bound to happen

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// fixture is a port and the place where back-ends get at it.
type fixture struct {
	*attachment
	t        testing.TB
	listener *net.UnixListener // of the back-end, when the port connects
}

func newFixture(t testing.TB, c Config) *fixture {
	t.Helper()
	f := &fixture{t: t}
	if c.Socket == "" {
		c.Socket = filepath.Join(t.TempDir(), "s")
	}
	if !c.Server {
		f.listen(c.Socket)
	}
	if c.RxSize == 0 {
		c.RxSize, c.TxSize = 64, 32
	}
	p, err := Open(testContext(t), c)
	if err != nil {
		t.Fatal(err)
	}
	f.attachment = p.(*attachment)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) listen(socket string) {
	f.t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		f.t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	f.listener = l
	f.t.Cleanup(func() { l.Close() })
}

// start connects b.
func (f *fixture) start(b *backend) *backend {
	f.t.Helper()
	var conn net.Conn
	var err error
	if f.cfg.Server {
		conn, err = net.Dial("unix", f.cfg.Socket)
	} else {
		conn, err = f.listener.Accept()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	b.serve(conn)
	f.t.Cleanup(func() { b.close() })
	return b
}

// until waits for a state of the link.
func (f *fixture) until(what string, cond func(linkState) bool) linkState {
	f.t.Helper()
	after := time.After(limit)
	for {
		state, changed := f.link.look()
		if cond(state) {
			return state
		}
		select {
		case <-changed:
		case <-after:
			f.t.Fatalf("%s did not come, now %+v", what, state)
		}
	}
}

// exchange sends n frames on a queue and takes them back, in order, never more at once than find room in several buffers each.
func (f *fixture) exchange(queue, n int) {
	f.t.Helper()
	tx, rx := f.Tx(queue), f.Rx(queue)
	for _, fr := range rx.Receive(f.cfg.RxSize) { // probes
		if binary.BigEndian.Uint16(fr[12:]) != probeType {
			f.t.Fatalf("a stray frame %x", fr)
		}
	}
	rx.Release()
	deadline := time.Now().Add(limit)
	for sent, got := 0, 0; got < n; idle() {
		slots := tx.Reserve(min(7, n-sent, f.cfg.RxSize/4-(sent-got)))
		for i := range slots {
			slots[i].Len = 60 + sent%100
			copy(slots[i].Buf, f.MAC())
			binary.BigEndian.PutUint64(slots[i].Buf[16:], uint64(sent))
			sent++
		}
		tx.Submit(len(slots))
		if err := tx.Flush(); err != nil {
			f.t.Fatal(err)
		}
		for _, fr := range rx.Receive(64) {
			if binary.BigEndian.Uint64(fr[16:]) != uint64(got) || len(fr) < 60+got%100 {
				f.t.Fatalf("frame %d came back as %x", got, fr[:min(40, len(fr))])
			}
			got++
		}
		rx.Release()
		if time.Now().After(deadline) {
			f.t.Fatalf("%d frames of %d sent came back, %d pending, %+v", got, sent, tx.Pending(), f.Stats())
		}
	}
	for tx.Pending() > 0 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if p := tx.Pending(); p != 0 {
		f.t.Errorf("%d frames pending at the end", p)
	}
}

// TestExchange: both roles, several queues, and back-ends that offer this or that.
func TestExchange(t *testing.T) {
	tests := []struct {
		name   string
		queues int
		set    func(b *backend)
	}{
		{"all", 1, func(*backend) {}},
		{"three pairs", 3, func(*backend) {}},
		{"any order, reversed", 2, func(b *backend) { b.features &^= featureInOrder; b.reverse = true }},
		{"not mergeable", 1, func(b *backend) { b.features &^= featureMergeable }},
		{"no acknowledgements", 2, func(b *backend) { b.protocol &^= protocolAck }},
		{"no status", 2, func(b *backend) { b.protocol &^= protocolStatus; b.queues = 2 }},
		{"no protocol features", 1, func(b *backend) { b.features &^= featureProtocol; b.protocol = 0 }},
		{"version 1 only", 1, func(b *backend) { b.features, b.protocol = featureVersion1, 0 }},
		{"frames over several buffers", 1, func(b *backend) { b.longFrame = 4000 }},
		{"polling", 1, func(b *backend) { b.poll = true }},
	}
	for _, server := range []bool{true, false} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, server %v", tt.name, server), func(t *testing.T) {
				f := newFixture(t, Config{Server: server, Queues: tt.queues})
				b := newBackend(t)
				tt.set(b)
				f.start(b)
				if err := f.Ready(testContext(t)); err != nil {
					t.Fatal(err)
				}
				for q := range tt.queues {
					f.exchange(q, 300)
				}
				want := port.Stats{Links: 1, Up: true}
				if diff := cmp.Diff(want, f.Stats()); diff != "" {
					t.Error(diff)
				}
				if n := b.echoed.Load(); n != uint64(301*tt.queues) || b.full.Load() != 0 {
					t.Errorf("the back-end sent back %d frames, without a buffer %d", n, b.full.Load())
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Lstat(f.cfg.Socket); server != errors.Is(err, os.ErrNotExist) {
					t.Errorf("the socket after Close: %v", err)
				}
			})
		}
	}
}

// TestHandshake: the order of messages that real back-ends are known to take.
func TestHandshake(t *testing.T) {
	f := newFixture(t, Config{Server: true})
	b := f.start(newBackend(t))
	if err := f.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b.close()
	var got []string
	for _, r := range b.got {
		got = append(got, r.String())
	}
	ring := "SET_VRING_NUM SET_VRING_BASE SET_VRING_ADDR SET_VRING_CALL SET_VRING_KICK "
	want := "SET_OWNER GET_FEATURES GET_PROTOCOL_FEATURES SET_PROTOCOL_FEATURES GET_QUEUE_NUM SET_STATUS SET_STATUS SET_STATUS SET_FEATURES SET_STATUS GET_STATUS SET_MEM_TABLE " +
		ring + ring + "SET_VRING_ENABLE SET_VRING_ENABLE SET_STATUS SET_VRING_ENABLE SET_VRING_ENABLE GET_VRING_BASE GET_VRING_BASE"
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Error(diff)
	}
	if b.agreed != featureVersion1|featureMergeable|featureInOrder|featureProtocol {
		t.Errorf("features %#x were set", b.agreed)
	}
}

// TestRefusal: what can't work ends Ready at once, with the reason.
func TestRefusal(t *testing.T) {
	tests := []struct {
		name   string
		queues int
		set    func(b *backend)
		want   string
	}{
		{"legacy", 1, func(b *backend) { b.features &^= featureVersion1 }, "without VIRTIO_F_VERSION_1"},
		{"no multiqueue", 2, func(b *backend) { b.features &^= featureMQ }, "without VIRTIO_NET_F_MQ"},
		{"no way to enable", 2, func(b *backend) { b.features &^= featureProtocol }, "without VHOST_USER_F_PROTOCOL_FEATURES"},
		{"too few queues", 3, func(b *backend) { b.queues = 2 }, "has 2 pairs of queues and not 3"},
		{"queues unknown", 2, func(b *backend) { b.protocol &^= protocolMQ }, "has 1 pairs of queues and not 2"},
		{"features not taken", 1, func(b *backend) {
			b.answer = func(r request, right []byte) []byte {
				if r == getStatus {
					return appendMessage(nil, r, flagReply, number(3))
				}
				return right
			}
		}, "does not take features 0x940008000 (status 0x3)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, Config{Server: true, Queues: tt.queues})
			b := newBackend(t)
			tt.set(b)
			f.start(b)
			err := f.Ready(testContext(t))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if s := f.Stats(); s.Up || s.Links != 0 {
				t.Errorf("%+v", s)
			}
			// Another back-end may do better.
			f.start(newBackend(t))
			f.until("a connection", func(s linkState) bool { return s.session != nil })
			if err := f.Ready(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGarbage: a wrong answer to any message is an error that names it, and the next back-end is served.
func TestGarbage(t *testing.T) {
	spoil := map[string]func(r request) []byte{
		"noise":         func(request) []byte { return bytes.Repeat([]byte{0xa5}, 40) },
		"another reply": func(request) []byte { return appendMessage(nil, 99, flagReply, number(0)) },
		"huge":          func(r request) []byte { return raw(r, version|flagReply, 1<<31) },
		"half":          func(r request) []byte { return nil },
	}
	for _, r := range []request{getFeatures, getProtocolFeatures, getQueueNum, setStatus, setFeatures, getStatus, setMemTable, setVringNum, setVringKick, setVringEnable} {
		for name, answer := range spoil {
			t.Run(fmt.Sprintf("%v %s", r, name), func(t *testing.T) {
				f := newFixture(t, Config{Server: true})
				b := newBackend(t)
				b.answer = func(got request, right []byte) []byte {
					if got == r {
						return answer(r)
					}
					return right
				}
				f.start(b)
				s := f.until("an error", func(s linkState) bool { return s.why != nil })
				if !strings.Contains(s.why.Error(), r.String()) || s.links != 0 {
					t.Errorf("after %v: %+v", r, s)
				}
				f.start(newBackend(t))
				if err := f.Ready(testContext(t)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestRefusedMessage: an acknowledgement that is no success.
func TestRefusedMessage(t *testing.T) {
	f := newFixture(t, Config{Server: true})
	b := newBackend(t)
	b.answer = func(r request, right []byte) []byte {
		if r == setMemTable {
			return appendMessage(nil, r, flagReply, number(1))
		}
		return right
	}
	f.start(b)
	s := f.until("an error", func(s linkState) bool { return s.why != nil })
	if want := "SET_MEM_TABLE: the back-end answered 1 instead of success"; s.why.Error() != want {
		t.Errorf("got %q, want %q", s.why, want)
	}
}

// TestUnasked: a message in the middle of work ends the connection.
func TestUnasked(t *testing.T) {
	f := newFixture(t, Config{Server: true})
	b := f.start(newBackend(t))
	if err := f.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.conn.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	s := f.until("the end", func(s linkState) bool { return s.links == 2 })
	if !strings.Contains(s.why.Error(), "not asked for") {
		t.Error(s.why)
	}
}

// TestSilent: a back-end that does not answer.
func TestSilent(t *testing.T) {
	f := newFixture(t, Config{Server: true, Timeout: 10 * time.Millisecond})
	conn, err := net.Dial("unix", f.cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := f.until("an error", func(s linkState) bool { return s.why != nil })
	if !strings.Contains(s.why.Error(), "GET_FEATURES: the back-end did not answer in 10ms") {
		t.Error(s.why)
	}
	// Close does not wait for an answer that never comes.
	f = newFixture(t, Config{Server: true, Timeout: time.Hour})
	other, err := net.Dial("unix", f.cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := io.ReadFull(other, make([]byte, headerLen)); err != nil { // the handshake has begun
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadyEnds: with ctx, saying how far it came.
func TestReadyEnds(t *testing.T) {
	f := newFixture(t, Config{Server: true})
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := f.Ready(ctx); err == nil || !strings.Contains(err.Error(), "no back-end has connected") || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b := newBackend(t)
	b.idle = true
	f.start(b)
	f.until("a connection", func(s linkState) bool { return s.session != nil })
	copy(f.memory.bytes[line:], "this is what the engine wrote")
	if err := f.Ready(ctx); err == nil || !strings.Contains(err.Error(), "does not take a frame from queue 0") || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.close()
	f.until("the end", func(s linkState) bool { return s.links == 2 })
	f.start(newBackend(t))
	if err := f.Ready(testContext(t)); err != nil {
		t.Error(err)
	}
	if !bytes.HasPrefix(f.memory.bytes[line:], []byte("this is what the engine wrote")) {
		t.Errorf("the probe left %q", f.memory.bytes[line:line+probeLen])
	}
	_ = f.Close()
	if err := f.Ready(testContext(t)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestReconnect: back-end after back-end; slots keep their content and nothing piles up.
func TestReconnect(t *testing.T) {
	for _, server := range []bool{true, false} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			f := newFixture(t, Config{Server: server, Queues: 2})
			for i, s := range f.tx[1].slots[:32] {
				copy(s.Buf[100:], fmt.Sprintf("content %d", i))
			}
			for round := range 5 {
				b := f.start(newBackend(t))
				if err := f.Ready(testContext(t)); err != nil {
					t.Fatal(err)
				}
				f.exchange(1, 50) // queue 0 is left alone
				b.close()
				f.until("the end", func(s linkState) bool { return s.session == nil })
				if diff := cmp.Diff(port.Stats{Links: uint64(2*round + 2)}, f.Stats()); diff != "" {
					t.Fatal(diff)
				}
				if n := len(f.Tx(1).Reserve(1)); n != 0 {
					t.Errorf("%d slots without a back-end", n)
				}
			}
			f.start(newBackend(t))
			if err := f.Ready(testContext(t)); err != nil {
				t.Fatal(err)
			}
			slots := f.Tx(1).Reserve(32)
			for _, s := range slots {
				if want := fmt.Sprintf("content %d", s.ID); !bytes.HasPrefix(s.Buf[100:], []byte(want)) {
					t.Errorf("slot %d holds %q", s.ID, s.Buf[100:110])
				}
			}
			// Now, the one before, and one that a queue left alone may hold on to.
			if n := openRings(t); len(slots) != 32 || n > 3 {
				t.Errorf("%d slots, memory of %d sessions", len(slots), n)
			}
		})
	}
}

// openRings is how many sessions' memory is open.
func openRings(t testing.TB) int {
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); strings.Contains(to, "vhost-rings") {
			n++
		}
	}
	return n
}

// TestDiesMidStream: a hot loop goes on while back-ends come and go under it.
func TestDiesMidStream(t *testing.T) {
	f := newFixture(t, Config{Server: true})
	var stop atomic.Bool
	var received atomic.Uint64
	done := make(chan struct{})
	tx, rx := f.Tx(0), f.Rx(0)
	go func() {
		defer close(done)
		for !stop.Load() {
			slots := tx.Reserve(8)
			for i := range slots {
				slots[i].Len = 60
			}
			tx.Submit(len(slots))
			if err := tx.Flush(); err != nil {
				t.Error(err)
				return
			}
			tx.Pending()
			received.Add(uint64(len(rx.Receive(8))))
			rx.Release()
			runtime.Gosched()
		}
	}()
	for round := range 10 {
		b := f.start(newBackend(t))
		before := received.Load()
		for after := time.After(limit); received.Load() < before+100; runtime.Gosched() {
			select {
			case <-after:
				t.Fatalf("round %d: %d frames received", round, received.Load()-before)
			default:
			}
		}
		if round%2 == 0 {
			b.close()
			continue
		}
		// A used index from nowhere: the hot loop itself finds out.
		b.halt()
		b.rings[1].done += 1000
		b.rings[1].flush(false)
		f.until("the end", func(s linkState) bool { return s.links >= uint64(2*round+2) })
	}
	stop.Store(true)
	<-done
}

// TestDescriptors: none is left open, not even those that a back-end sends for no reason.
func TestDescriptors(t *testing.T) {
	count := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	run := func() {
		f := newFixture(t, Config{Server: true, Queues: 2})
		for range 3 {
			b := newBackend(t)
			b.answer = func(_ request, right []byte) []byte {
				if _, _, err := b.conn.WriteMsgUnix(right, unix.UnixRights(0, 0, 0), nil); err != nil {
					t.Error(err)
				}
				return []byte{}
			}
			f.start(b)
			if err := f.Ready(testContext(t)); err != nil {
				t.Fatal(err)
			}
			b.close()
			f.until("the end", func(s linkState) bool { return s.session == nil })
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	}
	run()
	before := count()
	run()
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

func TestSocket(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	open := func(c Config) error {
		c.RxSize, c.TxSize = 2, 2
		p, err := Open(testContext(t), c)
		if err == nil {
			err = p.Close()
		}
		return err
	}
	want := func(err error, text string) {
		t.Helper()
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	listen := func(name string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path(name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		t.Cleanup(func() { l.Close() })
		return l
	}
	want(open(Config{Server: true, Socket: path("no/folder")}), "its folder does not exist")
	if err := os.WriteFile(path("file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(open(Config{Server: true, Socket: path("file")}), "no socket: it is left alone")
	listen("stale").Close()
	want(open(Config{Server: true, Socket: path("stale")}), "")
	listen("busy")
	want(open(Config{Server: true, Socket: path("busy")}), "somebody listens on this socket already")
	want(open(Config{Socket: path("busy")}), "")
	want(open(Config{Socket: path("nobody")}), "")

	p, err := Open(testContext(t), Config{Server: true, Socket: path("mode"), Mode: 0o666, RxSize: 2, TxSize: 2})
	want(err, "")
	info, err := os.Lstat(path("mode"))
	if err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Remove(path("mode")); err != nil {
		t.Fatal(err)
	}
	listen("mode") // somebody else's now
	want(p.Close(), "")

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"busy", "file", "mode"}, left); diff != "" {
		t.Errorf("what is left: %s", diff)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := Open(ctx, Config{Socket: path("x")}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	got, err := Config{Socket: "/run/plumb/vhost/t0"}.filled()
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Socket: "/run/plumb/vhost/t0", Queues: 1, RxSize: 4096, TxSize: 1024, MaxFrame: 1514, MAC: got.MAC, Timeout: 10 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(got.MAC) != 6 || got.MAC[0]&3 != 2 {
		t.Errorf("%v is not locally administered", got.MAC)
	}
	if other := localMAC("/run/plumb/vhost/t1"); other.String() == got.MAC.String() {
		t.Errorf("two sockets have address %v", other)
	}
	tests := []struct {
		set  func(c *Config)
		want string
	}{
		{func(c *Config) { c.Socket = "" }, "no socket"},
		{func(c *Config) { c.Socket = "/" + strings.Repeat("x", 107) }, "108 bytes long"},
		{func(c *Config) { c.Mode = 0o600 }, "the other side's"},
		{func(c *Config) { c.Server, c.Mode = true, os.ModeSetuid|0o600 }, "more than permission bits"},
		{func(c *Config) { c.Queues = -1 }, "-1 queue pairs"},
		{func(c *Config) { c.Queues = 129 }, "129 queue pairs"},
		{func(c *Config) { c.RxSize = 1000 }, "a receive ring of 1000"},
		{func(c *Config) { c.RxSize = 65536 }, "a receive ring of 65536"},
		{func(c *Config) { c.TxSize = 1 }, "a transmit ring of 1"},
		{func(c *Config) { c.MaxFrame = 59 }, "59 bytes"},
		{func(c *Config) { c.MaxFrame = 65536 }, "65536 bytes"},
		{func(c *Config) { c.Timeout = -1 }, "negative time limit"},
		{func(c *Config) { c.MAC = net.HardwareAddr{1, 2, 3, 4, 5, 6} }, "no address of one"},
		{func(c *Config) { c.MAC = net.HardwareAddr{2} }, "no address of one"},
	}
	for _, tt := range tests {
		c := Config{Socket: "/s"}
		tt.set(&c)
		if _, err := c.filled(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

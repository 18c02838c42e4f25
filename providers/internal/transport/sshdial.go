package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Dial connects to a socket of the host through the SSH connection. A process on the host passes the bytes on where the server forbids forwarding (AllowStreamLocalForwarding,
// AllowTcpForwarding), where the socket may be root's and the user is not, and for "unixpacket", which SSH has no way for. That needs perl or python3 there.
func (s *SSH) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if network != "unix" && network != "unixpacket" && network != "tcp" {
		return nil, fmt.Errorf("dial %s on %s: network %q is none of unix, unixpacket and tcp", addr, s.name, network)
	}
	return s.dialOnce(ctx, network, addr, true)
}

func (s *SSH) dialOnce(ctx context.Context, network, addr string, again bool) (net.Conn, error) {
	l, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	forbidden := s.forbidden[network] > 1
	s.mu.Unlock()
	if network == "unixpacket" || network == "unix" && s.sudo(l.target.user) || forbidden {
		return s.relay(ctx, network, addr)
	}
	conn, err := l.client.DialContext(ctx, network, addr)
	var refused *ssh.OpenChannelError
	switch {
	case err == nil:
		return timed(conn, false), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("dial %s on %s: %w", addr, s.name, ctx.Err())
	case !errors.As(err, &refused):
		l.close()
		if again { // it had ended before anything was asked
			return s.dialOnce(ctx, network, addr, false)
		}
		return nil, s.cut(err)
	}
	// OpenSSH says the same of a socket that nobody listens on and of one that it may not connect to; the process tells them apart. Once may be a daemon that began to listen meanwhile.
	conn, err = s.relay(ctx, network, addr)
	if err == nil {
		s.mu.Lock()
		s.forbidden[network]++
		s.mu.Unlock()
	}
	return conn, err
}

// notDialed is the error of a socket that cannot be connected to, as on this machine.
func (s *SSH) notDialed(network, addr string, errno int) error {
	return fmt.Errorf("on %s: %w", s.name, &net.OpError{Op: "dial", Net: network, Addr: sockAddr{network, addr}, Err: syscall.Errno(errno)})
}

type sockAddr struct{ network, addr string }

func (a sockAddr) Network() string { return a.network }
func (a sockAddr) String() string  { return a.addr }

// relayScript connects standard input and output to a socket, by perl or python3. It answers with a line: "+" when it is connected, "-" and the error number when not. The end of standard
// input ends it. A message of a unixpacket socket has its length before it, four bytes, in both directions.
const relayScript = `if command -v perl >/dev/null 2>&1; then exec perl -e '
use strict; use Socket qw(:DEFAULT getaddrinfo);
my ($net, $addr, $port) = @ARGV;
my ($ok, $frames) = (0, $net eq "unixpacket");
if ($net eq "tcp") {
	my ($e, @to) = getaddrinfo($addr, $port, {socktype => SOCK_STREAM});
	for (@to) { last if $ok = socket(S, $_->{family}, SOCK_STREAM, 0) && connect(S, $_->{addr}) }
} else { $ok = socket(S, AF_UNIX, $frames ? SOCK_SEQPACKET : SOCK_STREAM, 0) && connect(S, pack_sockaddr_un($addr)) }
$ok or do { syswrite(STDOUT, "-" . ($!+0) . "\n"); exit 0 };
syswrite(STDOUT, "+\n");
sub all { my ($to, $b) = @_; my $o = 0; while ($o < length $b) { my $n = syswrite($to, $b, length($b) - $o, $o); defined $n or return 0; $o += $n } 1 }
sub need { my $n = shift; my $b = ""; while (length $b < $n) { sysread(STDIN, $b, $n - length $b, length $b) or return undef } $b }
my $parent = $$;
my $child = fork();
if ($child == 0) {
	my $b;
	if ($frames) { while (defined($b = need(4))) { defined($b = need(unpack "N", $b)) && defined(send(S, $b, 0)) or last } }
	else { while (sysread(STDIN, $b, 65536)) { all(*S, $b) or last } }
	kill 9, $parent; exit 0;
}
my $b;
while (sysread(S, $b, $frames ? 1048576 : 65536)) { all(*STDOUT, ($frames ? pack("N", length $b) : "") . $b) or last }
kill 9, $child; exit 0;
' "$@"; fi
for p in python3 /usr/libexec/platform-python; do if command -v $p >/dev/null 2>&1; then exec $p -c '
import os, socket, sys, threading
net, addr = sys.argv[1], sys.argv[2]
frames = net == "unixpacket"
try:
    if net == "tcp":
        s = socket.create_connection((addr, int(sys.argv[3])))
    else:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if frames else socket.SOCK_STREAM)
        s.connect(addr)
except OSError as e:
    n = e.errno or 111
    os.write(1, b"-%d\n" % (n if n > 0 else 113)); sys.exit(0)
os.write(1, b"+\n")
def need(n):
    b = b""
    while len(b) < n:
        m = os.read(0, n - len(b))
        if not m: raise EOFError
        b += m
    return b
def up():
    try:
        while frames: s.send(need(int.from_bytes(need(4), "big")))
        while True:
            b = os.read(0, 65536)
            if not b: break
            s.sendall(b)
    finally: os._exit(0)
threading.Thread(target=up, daemon=True).start()
while True:
    b = s.recv(1048576 if frames else 65536)
    if not b: os._exit(0)
    if frames: b = len(b).to_bytes(4, "big") + b
    o = 0
    while o < len(b): o += os.write(1, b[o:])
' "$@"; fi; done
echo none
`

// relay dials through a process on the host. It takes a session as long as it lives.
func (s *SSH) relay(ctx context.Context, network, addr string, wrapper ...string) (net.Conn, error) {
	if strings.ContainsRune(addr, 0) {
		return nil, fmt.Errorf("dial %q on %s: a NUL byte is in no address", addr, s.name)
	}
	args := append(slices.Clone(wrapper), "sh", "-c", relayScript, "plumb-relay", network, addr)
	if network == "tcp" {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("dial %s on %s: %w", addr, s.name, err)
		}
		args = append(args[:len(args)-1], host, port)
	}
	if _, err := s.get(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	slots := s.slots
	s.mu.Unlock()
	if total, ok := slots.relay(); !ok {
		return nil, fmt.Errorf("dial %s on %s: all of %d sessions but one pass bytes of sockets on already. Log in as root where the server allows AllowStreamLocalForwarding and AllowTcpForwarding, or raise max_sessions and sshd's MaxSessions",
			addr, s.name, total)
	}
	sess, err := s.session(ctx)
	if err != nil {
		slots.endRelay()
		return nil, err
	}
	r := &relayed{session: sess, reader: bufio.NewReader(sess), end: sync.OnceFunc(slots.endRelay)}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		go func() { _, _ = io.Copy(io.Discard, sess.Stderr()) }()
		err := sess.start(s.line(args, sess.link.target.user))
		line := ""
		if err == nil {
			line, err = r.reader.ReadString('\n')
		}
		answers <- answer{line, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	if a.line == "+\n" {
		return timed(r, network == "unixpacket"), nil
	}
	_ = r.Close()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("dial %s on %s: %w", addr, s.name, ctx.Err())
	case strings.HasPrefix(a.line, "-"):
		errno, err := strconv.Atoi(strings.TrimSpace(a.line[1:]))
		if err != nil || errno == 0 {
			errno = int(syscall.EHOSTUNREACH)
		}
		return nil, s.notDialed(network, addr, errno)
	case a.line == "none\n":
		return nil, fmt.Errorf("dial %s on %s: the bytes would have to be passed on by perl or python3, and neither is there. Install one, or log in as root where sshd_config(5) has AllowStreamLocalForwarding and AllowTcpForwarding",
			addr, s.name)
	case a.err != nil && !sess.link.alive():
		return nil, s.cut(a.err)
	}
	return nil, fmt.Errorf("dial %s on %s: the process that passes bytes on has ended", addr, s.name)
}

// relayed is a connection through a session.
type relayed struct {
	*session
	reader *bufio.Reader
	end    func()
}

func (r *relayed) Read(b []byte) (int, error) { return r.reader.Read(b) }

func (r *relayed) Close() error {
	_ = r.CloseWrite() // the process ends with its input
	err := r.session.Close()
	r.end()
	return err
}

// messageLimit is more than the kernel takes for one message of a socket by default (net.core.wmem_max).
const messageLimit = 1 << 20

// timed gives a connection deadlines, which those through SSH do not have. With messages, one Read or Write of it is one message, which has its length before it in inner.
func timed(inner io.ReadWriteCloser, messages bool) net.Conn {
	near, far := net.Pipe()
	in, out := io.Reader(inner), io.Writer(inner)
	if messages {
		in, out = &unframed{r: inner}, &framed{w: inner}
	}
	size := 32 << 10
	if messages {
		size = messageLimit
	}
	end := sync.OnceValue(inner.Close)
	pass := func(to io.Writer, from io.Reader) {
		_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, size))
		_ = end()
		_ = far.Close()
	}
	go pass(far, in)
	go pass(out, far)
	return near
}

// framed puts the length before each message.
type framed struct{ w io.Writer }

func (f *framed) Write(b []byte) (int, error) {
	if _, err := f.w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// unframed reads a message at a time.
type unframed struct{ r io.Reader }

func (u *unframed) Read(b []byte) (int, error) {
	var head [4]byte
	if _, err := io.ReadFull(u.r, head[:]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > len(b) {
		return 0, fmt.Errorf("a message of %d bytes", n)
	}
	return io.ReadFull(u.r, b[:n])
}

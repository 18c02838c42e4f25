package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Dial connects to a socket of the host through the SSH connection. Where the server forbids that (AllowStreamLocalForwarding, AllowTcpForwarding), or the socket is
// root's and the user is not, a process on the host passes the bytes on; that needs perl or python3 there. "unixpacket" cannot be carried.
func (s *SSH) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	switch network {
	case "unix", "tcp":
	case "unixpacket":
		return nil, fmt.Errorf("dial %s on %s: sockets of type unixpacket cannot be reached through SSH", addr, s.name)
	default:
		return nil, fmt.Errorf("dial %s on %s: network %q is none of unix, unixpacket and tcp", addr, s.name, network)
	}
	if network == "unix" && s.sudo() {
		return s.relay(ctx, network, addr)
	}
	l, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	if s.isForbidden(network) {
		return s.relay(ctx, network, addr)
	}
	conn, err := l.client.DialContext(ctx, network, addr)
	if err == nil {
		return timed(conn), nil
	}
	var refused *ssh.OpenChannelError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("dial %s on %s: %w", addr, s.name, ctx.Err())
	case !errors.As(err, &refused):
		l.close()
		return nil, s.cut(err)
	}
	// OpenSSH says the same of a socket that nobody listens on and of one that it may not connect to; the process tells them apart.
	conn, err = s.relay(ctx, network, addr)
	if err == nil {
		s.mu.Lock()
		s.forbidden[network] = true
		s.mu.Unlock()
	}
	return conn, err
}

func (s *SSH) isForbidden(network string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forbidden[network]
}

// notDialed is the error of a socket that cannot be connected to, as on this machine.
func (s *SSH) notDialed(network, addr string, errno int) error {
	return fmt.Errorf("on %s: %w", s.name, &net.OpError{Op: "dial", Net: network, Addr: sockAddr{network, addr}, Err: syscall.Errno(errno)})
}

type sockAddr struct{ network, addr string }

func (a sockAddr) Network() string { return a.network }
func (a sockAddr) String() string  { return a.addr }

// relayScript connects standard input and output to a socket, by perl or python3. It answers with a line: "+" when it is connected, "-" and the error number when not.
const relayScript = `if command -v perl >/dev/null 2>&1; then exec perl -e '
use strict; use Socket;
my ($net, $addr, $port) = @ARGV;
my $ok;
if ($net eq "unix") { $ok = socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un($addr)) }
else { my $ip = inet_aton($addr); $ok = $ip && socket(S, AF_INET, SOCK_STREAM, 0) && connect(S, pack_sockaddr_in($port, $ip)) }
$ok or do { syswrite(STDOUT, "-" . ($!+0) . "\n"); exit 0 };
syswrite(STDOUT, "+\n");
sub copy { my ($from, $to) = @_; my $b; while (sysread($from, $b, 65536)) { my $o = 0; while ($o < length $b) { my $n = syswrite($to, $b, length($b) - $o, $o); defined $n or return; $o += $n } } }
my $child = fork();
if ($child == 0) { copy(*STDIN, *S); shutdown(S, 1); exit 0 }
copy(*S, *STDOUT); kill 9, $child; exit 0;
' "$@"; fi
if command -v python3 >/dev/null 2>&1; then exec python3 -c '
import os, socket, sys, threading
net, addr = sys.argv[1], sys.argv[2]
try:
    if net == "unix":
        s = socket.socket(socket.AF_UNIX); s.connect(addr)
    else:
        s = socket.create_connection((addr, int(sys.argv[3])))
except OSError as e:
    os.write(1, b"-%d\n" % (e.errno or 111)); sys.exit(0)
os.write(1, b"+\n")
def up():
    while True:
        b = os.read(0, 65536)
        if not b:
            try: s.shutdown(socket.SHUT_WR)
            except OSError: pass
            return
        s.sendall(b)
threading.Thread(target=up, daemon=True).start()
while True:
    b = s.recv(65536)
    if not b: os._exit(0)
    o = 0
    while o < len(b): o += os.write(1, b[o:])
' "$@"; fi
echo none
`

// relay dials through a process on the host. It takes a session as long as it lives.
func (s *SSH) relay(ctx context.Context, network, addr string, wrapper ...string) (net.Conn, error) {
	args := append(slices.Clone(wrapper), "sh", "-c", relayScript, "plumb-relay", network, addr)
	if network == "tcp" {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("dial %s on %s: %w", addr, s.name, err)
		}
		args = append(args[:len(args)-1], host, port)
	}
	sess, l, give, err := s.session(ctx)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (net.Conn, error) {
		_ = sess.Close()
		give()
		return nil, err
	}
	in, err := sess.StdinPipe()
	if err != nil {
		return fail(err)
	}
	out, err := sess.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	sess.Stderr = io.Discard
	type answer struct {
		line string
		err  error
	}
	reader := bufio.NewReader(out)
	answers := make(chan answer, 1)
	go func() {
		if err := sess.Start(s.line(args)); err != nil {
			answers <- answer{err: err}
			return
		}
		line, err := reader.ReadString('\n')
		answers <- answer{line, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		return fail(fmt.Errorf("dial %s on %s: %w", addr, s.name, ctx.Err()))
	}
	switch {
	case a.line == "+\n":
		return timed(&relayed{sess: sess, in: in, out: reader, give: give}), nil
	case strings.HasPrefix(a.line, "-"):
		errno, err := strconv.Atoi(strings.TrimSpace(a.line[1:]))
		if err != nil || errno == 0 {
			errno = int(syscall.ECONNREFUSED)
		}
		return fail(s.notDialed(network, addr, errno))
	case a.line == "none\n":
		return fail(fmt.Errorf("dial %s on %s: the SSH server forbids forwarding, and neither perl nor python3 is there to pass bytes on. Set AllowStreamLocalForwarding and AllowTcpForwarding to yes in sshd_config(5)", addr, s.name))
	case a.err != nil && !l.alive():
		return fail(s.cut(a.err))
	}
	return fail(fmt.Errorf("dial %s on %s: the process that passes bytes on has ended", addr, s.name))
}

// relayed is a connection through a session.
type relayed struct {
	sess *ssh.Session
	in   io.WriteCloser
	out  io.Reader
	give func()
}

func (r *relayed) Read(b []byte) (int, error)  { return r.out.Read(b) }
func (r *relayed) Write(b []byte) (int, error) { return r.in.Write(b) }

func (r *relayed) Close() error {
	err := r.sess.Close()
	r.give()
	return err
}

// timed gives a connection deadlines, which those through SSH do not have.
func timed(inner io.ReadWriteCloser) net.Conn {
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(far, inner)
		_ = far.Close()
	}()
	go func() {
		_, _ = io.Copy(inner, far)
		_ = inner.Close()
		_ = far.Close()
	}()
	return near
}

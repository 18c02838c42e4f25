package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"plumb/providers"
)

// SSH is a machine reached by SSH: one connection, on which sessions run side by side. It is made when it is first needed, and made again when it has ended. What ran when it was
// cut fails with an error that wraps providers.ErrUnreachable, since nobody knows how far it came; reads are tried once more.
//
// The host needs a POSIX shell and GNU or busybox tools. The user's login shell must read `export A=B` and single quotes as a POSIX shell does.
type SSH struct {
	name   string
	cfg    SSHConfig
	dial   DialFunc
	jumped bool // dial leads through another host: ProxyJump of ssh_config is not looked at

	files *files

	mu         sync.Mutex
	link       *link
	making     *attempt
	slots      *slots
	made       int
	closed     bool
	management string
	forbidden  map[string]bool // networks that the server does not forward
}

var _ providers.Conn = (*SSH)(nil)

// NewSSH makes a connection that is opened by Open or its first use. dial nil: from this machine; otherwise through another host.
func NewSSH(name string, cfg SSHConfig, dial DialFunc) *SSH {
	s := &SSH{name: name, cfg: cfg, dial: dial, jumped: dial != nil, forbidden: map[string]bool{}}
	if dial == nil {
		var d net.Dialer
		s.dial = d.DialContext
	}
	s.files = &files{name: name, run: s.Run, retry: true}
	return s
}

// Open connects. An error wraps providers.ErrUnreachable and says what to do.
func (s *SSH) Open(ctx context.Context) error {
	_, err := s.get(ctx)
	return err
}

// Connections counts the connections that were made.
func (s *SSH) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

// ManagementAddress is providers.Managed's.
func (s *SSH) ManagementAddress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.management
}

// prelude is what every command begins with: it tells its process group, so that it can be ended, and the address that it came in by.
const prelude = `read -r _ _ _ _ g _ </proc/$$/stat; echo "plumb:$g" >&2; cd /; export LC_ALL=C; exec `

const arrival = `echo "plumb-at:$SSH_CONNECTION" >&2; `

// withEnv is a shell script that takes variables from standard input, so that their values are on no command line. $1 is how many.
const withEnv = `n=$1; shift
while [ "$n" -gt 0 ]; do
	IFS= read -r v || exit 125
	v=$(printf '%bx' "$v")
	export "${v%x}"
	n=$((n - 1))
done
exec "$@"`

// Run runs a command as Local does. When the connection is cut meanwhile, nobody knows whether it was done.
func (s *SSH) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	if len(cmd.Args) == 0 {
		return providers.Result{}, errors.New("run: no command")
	}
	args, stdin := cmd.Args, cmd.Stdin
	for _, a := range cmd.Args {
		if strings.ContainsRune(a, 0) {
			return providers.Result{}, fmt.Errorf("%s on %s: an argument holds a NUL byte", cmd.Args[0], s.name)
		}
	}
	if len(cmd.Env) > 0 {
		var err error
		if stdin, err = envLines(cmd.Env, stdin); err != nil {
			return providers.Result{}, fmt.Errorf("%s on %s: %w", cmd.Args[0], s.name, err)
		}
		args = append([]string{"sh", "-c", withEnv, "plumb-env", strconv.Itoa(len(cmd.Env))}, args...)
	}
	limit := cmd.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := s.exec(ctx, args, stdin)
	switch {
	case err == nil && res.Exit != 0:
		return res, s.exitError(cmd.Args, res)
	case err == nil:
		return res, nil
	case outer.Err() != nil:
		return res, fmt.Errorf("%s on %s: %w", cmd.Args[0], s.name, outer.Err())
	case ctx.Err() != nil:
		return res, fmt.Errorf("%s on %s: not done within %s, killed: %w", cmd.Args[0], s.name, limit, ctx.Err())
	}
	return res, fmt.Errorf("%s on %s: %w", cmd.Args[0], s.name, err)
}

// envLines puts the variables in front of the input, a line each.
func envLines(env []string, stdin []byte) ([]byte, error) {
	var b bytes.Buffer
	for _, e := range env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !identifier(name) || strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("%q is not a variable", name)
		}
		b.WriteString(strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(e) + "\n")
	}
	b.Write(stdin)
	return b.Bytes(), nil
}

// exitError is that of the command, or of sudo.
func (s *SSH) exitError(args []string, res providers.Result) error {
	text := string(res.Stderr)
	if s.sudo() && (strings.HasPrefix(text, "sudo: ") || res.Exit == 127 && strings.Contains(text, "sudo: ")) {
		first, _, _ := strings.Cut(text, "\n")
		return fmt.Errorf("%s on %s %w as root: user %s may not use sudo without a password: %s. Log in as root, or allow it in sudoers(5) with NOPASSWD",
			args[0], s.name, providers.ErrUnreachable, s.user(), strings.TrimSpace(first))
	}
	return &providers.ExitError{Host: s.name, Args: args, Result: res}
}

func (s *SSH) user() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		return s.link.target.user
	}
	return s.cfg.User
}

func (s *SSH) sudo() bool { return s.cfg.Sudo != SudoNever && s.user() != "root" }

// line is what the login shell of the host reads.
func (s *SSH) line(args []string) string {
	line := prelude + Quote(args...)
	if s.sudo() {
		line = "exec sudo -n -- sh -c " + Quote(line)
	}
	return arrival + line
}

var errCut = errors.New("the connection was cut")

func (s *SSH) cut(err error) error {
	return fmt.Errorf("%s %w: %w (%w)", s.name, providers.ErrUnreachable, errCut, err)
}

// A slot is given up after so many refusals, and the command after so many: about ten seconds.
const (
	refusalsOfSlot = 8
	refusalsAtMost = 64
)

// session opens a session; the function returns its slot.
func (s *SSH) session(ctx context.Context) (*ssh.Session, *link, func(), error) {
	for refusals := 0; ; {
		l, err := s.get(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		s.mu.Lock()
		slots := s.slots
		s.mu.Unlock()
		if err := slots.take(ctx); err != nil {
			return nil, nil, nil, err
		}
		type answer struct {
			sess *ssh.Session
			err  error
		}
		answers := make(chan answer, 1)
		go func() {
			sess, err := l.client.NewSession()
			answers <- answer{sess, err}
		}()
		var a answer
		select {
		case a = <-answers:
		case <-ctx.Done():
			go func() { // it may still be opened
				if a := <-answers; a.err == nil {
					_ = a.sess.Close()
				}
				slots.give()
			}()
			return nil, nil, nil, ctx.Err()
		}
		if a.err == nil {
			return a.sess, l, slots.give, nil
		}
		var refused *ssh.OpenChannelError
		if !errors.As(a.err, &refused) {
			slots.give()
			l.close()
			return nil, nil, nil, s.cut(a.err)
		}
		// A session that has ended here may not have ended there yet; when that does not help, there are to be fewer.
		refusals++
		if refusals%refusalsOfSlot == 0 && slots.lose() {
			continue
		}
		slots.give()
		if refusals >= refusalsAtMost {
			return nil, nil, nil, fmt.Errorf("%s %w: the SSH server refuses sessions: %w. See MaxSessions in sshd_config(5)", s.name, providers.ErrUnreachable, a.err)
		}
		select {
		case <-time.After(min(time.Duration(refusals)*10*time.Millisecond, time.Second/4)):
		case <-ctx.Done():
			return nil, nil, nil, ctx.Err()
		}
	}
}

// exec runs a command to its end. A non-zero status is no error here.
func (s *SSH) exec(ctx context.Context, args []string, stdin []byte) (providers.Result, error) {
	sess, l, give, err := s.session(ctx)
	if err != nil {
		return providers.Result{}, err
	}
	defer give()
	defer sess.Close()
	var stdout, stderr buffer
	sess.Stdin, sess.Stdout, sess.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	done := make(chan error, 1)
	go func() { done <- sess.Run(s.line(args)) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		s.kill(l, sess, stderr.group)
		select {
		case <-done:
		case <-l.dead:
		case <-time.After(pipeLimit):
		}
		return providers.Result{Stdout: stdout.bytes(), Stderr: s.said(&stderr)}, ctx.Err()
	}
	res := providers.Result{Stdout: stdout.bytes(), Stderr: s.said(&stderr)}
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return res, nil
	case errors.As(err, &exit):
		res.Exit = exit.ExitStatus()
		return res, nil
	}
	l.close()
	return res, s.cut(err)
}

// said is what the command itself has written to its standard error; the prelude's lines are taken note of.
func (s *SSH) said(stderr *buffer) []byte {
	text := stderr.bytes()
	for {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		switch {
		case ok && bytes.HasPrefix(line, []byte("plumb-at:")):
			if f := strings.Fields(strings.TrimPrefix(string(line), "plumb-at:")); len(f) == 4 {
				s.mu.Lock()
				s.management = f[2]
				s.mu.Unlock()
			}
		case ok && bytes.HasPrefix(line, []byte("plumb:")):
		default:
			return text
		}
		text = rest
	}
}

// kill ends the process group of a session, which goes on otherwise when its session is closed.
func (s *SSH) kill(l *link, sess *ssh.Session, group func() string) {
	_ = sess.Signal(ssh.SIGKILL)
	g := group()
	if g == "" || !l.alive() {
		return
	}
	killer, err := l.client.NewSession()
	if err != nil {
		return
	}
	defer killer.Close()
	ended := make(chan struct{})
	go func() {
		_ = killer.Run(s.line([]string{"kill", "-KILL", "--", "-" + g}))
		close(ended)
	}()
	select {
	case <-ended:
	case <-l.dead:
	case <-time.After(pipeLimit):
	}
}

// buffer is an io.Writer that may be read while it is written to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

// group is the process group that the prelude told; "" when it has not.
func (b *buffer) group() string {
	for line := range strings.Lines(string(b.bytes())) {
		if g, ok := strings.CutPrefix(strings.TrimSpace(line), "plumb:"); ok && g != "" && strings.Trim(g, "0123456789") == "" {
			return g
		}
	}
	return ""
}

// ReadFiles reads files in one round trip; calls that come while one is under way share the next.
func (s *SSH) ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error) {
	return s.files.read(ctx, patterns)
}

// WriteFile replaces a file.
func (s *SSH) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	return s.files.write(ctx, path, data, mode)
}

// Start starts a supervised process.
func (s *SSH) Start(ctx context.Context, p providers.Process) error {
	cmd, err := startCommand(p)
	if err != nil {
		return err
	}
	_, err = s.Run(ctx, cmd)
	return startError(err, p)
}

// Close ends the connection. Processes that Start has started live on.
func (s *SSH) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.link != nil {
		s.link.close()
	}
	return nil
}

var _ io.Writer = (*buffer)(nil)

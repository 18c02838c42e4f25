package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"sync"

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
	forbidden  map[string]int // by network: how often the server refused to forward what a process could reach
	orphans    []string       // process groups of commands that a cut left behind, as the prelude tells them
}

var _ providers.Conn = (*SSH)(nil)

// NewSSH makes a connection that is opened by Open or its first use. dial nil: from this machine; otherwise through another host.
func NewSSH(name string, cfg SSHConfig, dial DialFunc) *SSH {
	s := &SSH{name: name, cfg: cfg, dial: dial, jumped: dial != nil, forbidden: map[string]int{}}
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

// prelude is what every command begins with: it tells its process group, so that it can be ended, and finds root's programs also where the user is not root.
const prelude = `read -r _ _ _ _ g _ </proc/$$/stat; read -r _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ t _ </proc/$g/stat; read -r b </proc/sys/kernel/random/boot_id; ` +
	`echo "plumb:$g $b $t" >&2; cd /; export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"; exec `

// arrival tells the address that the connection came in by.
const arrival = `echo "plumb-at:$SSH_CONNECTION" >&2; `

// lineLimit is how long a command line may be: Linux takes no argument of more, and a shell of the host gets the whole line as one (MAX_ARG_STRLEN, execve(2)).
const lineLimit = 128<<10 - 1

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
	if strings.HasPrefix(cmd.Args[0], "-") { // exec of some shells would take it for an option
		res := providers.Result{Exit: 127, Stderr: []byte(cmd.Args[0] + ": not found\n")}
		return res, &providers.ExitError{Host: s.name, Args: cmd.Args, Result: res}
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
		return res, &providers.ExitError{Host: s.name, Args: cmd.Args, Result: res}
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

// sudo says whether commands of a user go through sudo.
func (s *SSH) sudo(user string) bool { return s.cfg.Sudo != SudoNever && user != "root" }

// line is what the login shell of the host reads.
func (s *SSH) line(args []string, user string) string {
	line := prelude + Quote(args...)
	if s.sudo(user) {
		line = "exec sudo -n -- sh -c " + Quote("unset SUDO_COMMAND SUDO_USER SUDO_UID SUDO_GID; "+line)
	}
	return arrival + line
}

var errCut = errors.New("the connection was cut")

func (s *SSH) cut(err error) error {
	return fmt.Errorf("%s %w: %w (%w)", s.name, providers.ErrUnreachable, errCut, err)
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

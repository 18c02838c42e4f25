package sshtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"plumb/providers"
)

// command has the machine do what the line of Plumb's client asks for. A line that Plumb does not write is refused.
func (s *Server) command(ch ssh.Channel, line, connection string) {
	fail := func(n int, format string, args ...any) {
		fmt.Fprintf(ch.Stderr(), format+"\n", args...)
		status(ch, n)
	}
	_, rest, ok := strings.Cut(line, ">&2; ") // the arrival
	if !ok {
		fail(127, "sh: the test's server does not know this line: %s", line)
		return
	}
	fmt.Fprintf(ch.Stderr(), "plumb-at:%s\n", connection)
	if quoted, ok := strings.CutPrefix(rest, "exec sudo -n -- sh -c "); ok {
		words := unquote(quoted)
		if s.options.NoSudo {
			fail(1, "sudo: a password is required")
			return
		}
		if len(words) != 1 {
			fail(2, "sh: %d words after sudo", len(words))
			return
		}
		rest = words[0]
	}
	_, quoted, ok := strings.Cut(rest, "; exec ")
	if !ok {
		fail(127, "sh: the test's server does not know this line: %s", line)
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.mu.Lock()
	s.last++
	group := strconv.Itoa(s.last)
	s.groups[group] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.groups, group)
		s.mu.Unlock()
	}()
	fmt.Fprintf(ch.Stderr(), "plumb:%s boot 1\n", group)
	in := bufio.NewReader(ch)
	args := unquote(quoted)
	var env []string
	if name, rest := script(args); name == "plumb-env" && len(rest) > 1 {
		n, _ := strconv.Atoi(rest[0])
		for range n {
			v, err := in.ReadString('\n')
			if err != nil {
				fail(125, "sh: a variable is missing")
				return
			}
			env = append(env, strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(strings.TrimSuffix(v, "\n")))
		}
		args = rest[1:]
	}
	name, rest2 := script(args)
	switch name {
	case "plumb-kill":
		s.kill(rest2)
		status(ch, 0)
	case "plumb-read":
		s.read(ctx, ch, in, rest2)
	case "plumb-write":
		s.write(ctx, ch, in, rest2, fail)
	case "plumb-start":
		s.start(ctx, ch, rest2, env, fail)
	case "plumb-relay":
		s.relay(ctx, ch, in, rest2)
	default:
		stdin, err := io.ReadAll(in)
		if err != nil {
			return
		}
		s.run(ctx, ch, providers.Cmd{Args: args, Env: env, Stdin: stdin, Timeout: 1 << 40})
	}
}

// script takes `sh -c SCRIPT NAME ARGS...` apart.
func script(args []string) (name string, rest []string) {
	if len(args) < 4 || args[0] != "sh" || args[1] != "-c" {
		return "", nil
	}
	return args[3], args[4:]
}

// unquote is the reverse of transport.Quote.
func unquote(line string) []string {
	var words []string
	var b strings.Builder
	word, quoted := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'':
			quoted, word = !quoted, true
		case quoted:
			b.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		case c == ' ':
			if word {
				words = append(words, b.String())
			}
			word = false
			b.Reset()
		default:
			word = true
			b.WriteByte(c)
		}
	}
	if word {
		words = append(words, b.String())
	}
	return words
}

func (s *Server) run(ctx context.Context, ch ssh.Channel, cmd providers.Cmd) {
	res, err := s.machine.Run(ctx, cmd)
	_, _ = ch.Write(res.Stdout)
	_, _ = ch.Stderr().Write(res.Stderr)
	var exit *providers.ExitError
	switch {
	case ctx.Err() != nil:
		status(ch, 128+9)
	case err == nil || errors.As(err, &exit):
		status(ch, res.Exit)
	default: // the machine is gone in the middle of it
		_ = ch.Close()
	}
}

// kill ends commands by their groups.
func (s *Server) kill(words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i+2 < len(words); i += 3 {
		if cancel := s.groups[words[i]]; cancel != nil {
			cancel()
		}
	}
}

// read answers as the script of the client does.
func (s *Server) read(ctx context.Context, ch ssh.Channel, in *bufio.Reader, words []string) {
	sep, err := in.ReadString('\n')
	if err != nil {
		status(ch, 1)
		return
	}
	sep = strings.TrimSuffix(sep, "\n")
	var patterns []string
	for _, w := range words {
		p := w[1:]
		if w[0] == 'G' {
			p = strings.ReplaceAll(p, "[!", "[^")
		}
		patterns = append(patterns, p)
	}
	found, err := s.machine.ReadFiles(ctx, patterns...)
	if err != nil && len(found) == 0 && ctx.Err() == nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EISDIR) {
		_ = ch.Close()
		return
	}
	var list, data strings.Builder
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list.WriteString(name + "\x00/proc/self/fd/3\x00")
		data.Write(found[name])
		data.WriteString(sep)
	}
	for name, errno := range problems(err, patterns) {
		list.WriteString(name + "\x00/proc/self/fd/3\x00")
		data.WriteString(sep)
		fmt.Fprintf(ch.Stderr(), "cat: %s: %s\n", name, errno)
	}
	_, _ = fmt.Fprintf(ch, "%d\n%s%s", list.Len(), list.String(), data.String())
	status(ch, 0)
}

// problems are the files that could not be read. A machine that does not tell which says it of those that were asked for by name.
func problems(err error, patterns []string) map[string]string {
	out := map[string]string{}
	if err == nil {
		return out
	}
	all := []error{err}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		all = j.Unwrap()
	}
	for _, e := range all {
		text := "Permission denied"
		if errors.Is(e, syscall.EISDIR) {
			text = "Is a directory"
		}
		var p *fs.PathError
		for _, name := range patterns {
			if strings.Contains(e.Error(), name) {
				out[name] = text
			}
		}
		if len(out) == 0 && errors.As(e, &p) {
			out[p.Path] = text
		}
	}
	return out
}

func (s *Server) write(ctx context.Context, ch ssh.Channel, in io.Reader, words []string, fail func(int, string, ...any)) {
	if len(words) != 3 {
		fail(2, "write: %d words", len(words))
		return
	}
	mode, err := strconv.ParseUint(words[1], 8, 32)
	if err != nil {
		fail(2, "write: mode %s", words[1])
		return
	}
	data, err := io.ReadAll(in)
	if err != nil || strconv.Itoa(len(data)) != words[2] {
		fail(74, "write: cut off")
		return
	}
	perm := fs.FileMode(mode & 0o777)
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			perm |= flag
		}
	}
	err = s.machine.WriteFile(ctx, words[0], data, perm)
	var errno syscall.Errno
	switch {
	case err == nil:
		status(ch, 0)
	case errors.As(err, &errno):
		fail(1, "dd: %s: %s", words[0], text(errno))
	case errors.Is(err, fs.ErrNotExist):
		fail(72, "no such folder")
	case errors.Is(err, fs.ErrPermission):
		fail(1, "mktemp: %s: Permission denied", words[0])
	default:
		fail(1, "%s", err)
	}
}

// text is an error number in strerror(3)'s words.
func text(e syscall.Errno) string {
	s := e.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

func (s *Server) start(ctx context.Context, ch ssh.Channel, words, env []string, fail func(int, string, ...any)) {
	if len(words) < 5 {
		fail(2, "start: %d words", len(words))
		return
	}
	p := providers.Process{Dir: words[2], Args: words[4:]}
	for i, e := range env {
		p.Env = append(p.Env, strings.TrimPrefix(e, fmt.Sprintf("PLUMB_ENV_%d=", i)))
	}
	if err := s.machine.Start(ctx, p); err != nil {
		fail(75, "%s", err)
		return
	}
	status(ch, 0)
}

// relay passes bytes of a socket on.
func (s *Server) relay(ctx context.Context, ch ssh.Channel, in *bufio.Reader, words []string) {
	network, addr := words[0], words[1]
	if network == "tcp" {
		addr = net.JoinHostPort(words[1], words[2])
	}
	to, err := s.machine.Dial(ctx, network, addr)
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.ECONNREFUSED
		}
		fmt.Fprintf(ch, "-%d\n", int(errno))
		status(ch, 0)
		return
	}
	fmt.Fprint(ch, "+\n")
	if network == "unixpacket" {
		messages(ch, in, to)
	} else {
		pass(struct {
			io.Reader
			io.WriteCloser
		}{in, ch}, to)
	}
}

// messages carries messages, each with its length before it.
func messages(ch io.WriteCloser, in io.Reader, to net.Conn) {
	go func() {
		defer to.Close()
		for {
			var n uint32
			if binary.Read(in, binary.BigEndian, &n) != nil {
				return
			}
			b := make([]byte, n)
			if _, err := io.ReadFull(in, b); err != nil {
				return
			}
			if _, err := to.Write(b); err != nil {
				return
			}
		}
	}()
	defer ch.Close()
	b := make([]byte, 1<<20)
	for {
		n, err := to.Read(b)
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			return
		}
		if _, err := ch.Write(append(binary.BigEndian.AppendUint32(nil, uint32(n)), b[:n]...)); err != nil {
			return
		}
	}
}

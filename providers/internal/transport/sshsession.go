package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"plumb/providers"
)

// session is one command of a connection. x/crypto's own does not tell the exit status before the output's end, which a daemon that the command left may hold open.
type session struct {
	ssh.Channel
	link   *link
	slots  *slots
	once   sync.Once
	exited chan int // gets the exit status; closed when the session has ended
}

// A slot is given up after so many refusals, and the command after so many: about ten seconds.
const (
	refusalsOfSlot = 8
	refusalsAtMost = 64
)

// session opens a session, which has to be closed. Nothing was asked of the host when it fails: a connection that has ended is made again.
func (s *SSH) session(ctx context.Context) (*session, error) {
	again := true
	for refusals := 0; ; {
		l, err := s.get(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		slots := s.slots
		s.mu.Unlock()
		if err := slots.take(ctx); err != nil {
			return nil, err
		}
		sess, err := l.session(ctx, slots)
		if err == nil {
			return sess, nil
		}
		var refused *ssh.OpenChannelError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() // the slot is given back when the host has answered
		case !errors.As(err, &refused):
			slots.give()
			l.close()
			if again {
				again = false
				continue
			}
			return nil, s.cut(err)
		}
		// A session that has ended here may not have ended there yet; when that does not help, there are to be fewer.
		refusals++
		if refusals%refusalsOfSlot == 0 && slots.lose() {
			continue
		}
		slots.give()
		if refusals >= refusalsAtMost {
			return nil, fmt.Errorf("%s %w: the SSH server refuses sessions: %w. See MaxSessions in sshd_config(5)", s.name, providers.ErrUnreachable, err)
		}
		select {
		case <-time.After(min(time.Duration(refusals)*10*time.Millisecond, time.Second/4)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// session opens one on this very connection. slots nil: without counting it.
func (l *link) session(ctx context.Context, slots *slots) (*session, error) {
	type answer struct {
		ch   ssh.Channel
		reqs <-chan *ssh.Request
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		ch, reqs, err := l.client.OpenChannel("session", nil)
		answers <- answer{ch, reqs, err}
	}()
	open := func(a answer) *session {
		sess := &session{Channel: a.ch, link: l, slots: slots, exited: make(chan int, 1)}
		go sess.listen(a.reqs)
		return sess
	}
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		return open(a), nil
	case <-ctx.Done():
		go func() { // it may still be opened
			if a := <-answers; a.err == nil {
				_ = open(a).Close()
			} else if slots != nil {
				slots.give()
			}
		}()
		return nil, ctx.Err()
	}
}

// Close ends the session, not the command.
func (s *session) Close() error {
	err := s.Channel.Close()
	s.once.Do(func() {
		if s.slots != nil {
			s.slots.give()
		}
	})
	return err
}

// listen takes what the host tells of the command.
func (s *session) listen(reqs <-chan *ssh.Request) {
	defer close(s.exited)
	told := false
	tell := func(status int) {
		if !told {
			told = true
			s.exited <- status
		}
	}
	for r := range reqs {
		switch r.Type {
		case "exit-status":
			var m struct{ Status uint32 }
			if ssh.Unmarshal(r.Payload, &m) == nil {
				tell(int(m.Status))
			}
		case "exit-signal":
			var m struct {
				Signal     string
				Core       bool
				Message    string
				LanguageID string
			}
			if ssh.Unmarshal(r.Payload, &m) == nil {
				tell(128 + signalNumbers[m.Signal])
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

// signalNumbers are those that SSH has names for (RFC 4254 section 6.10).
var signalNumbers = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15}

var errNoExec = errors.New("the SSH server does not run commands")

// start has the host's login shell read the line.
func (s *session) start(line string) error {
	ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{line}))
	if err == nil && !ok {
		err = errNoExec
	}
	return err
}

// exec runs a command to its end. A non-zero status is no error here.
func (s *SSH) exec(ctx context.Context, args []string, stdin []byte) (providers.Result, error) {
	sess, err := s.session(ctx)
	if err != nil {
		return providers.Result{}, err
	}
	defer sess.Close()
	line := s.line(args, sess.link.target.user)
	if len(line) > lineLimit {
		return providers.Result{}, fmt.Errorf("its command line has %d bytes, and hosts take %d by SSH: give long data by standard input or a file", len(line), lineLimit)
	}
	var stdout, stderr buffer
	type end struct {
		status int
		err    error
	}
	ended := make(chan end, 1)
	var output sync.WaitGroup
	output.Go(func() { _, _ = io.Copy(&stdout, sess) })
	output.Go(func() { _, _ = io.Copy(&stderr, sess.Stderr()) })
	whole := make(chan struct{})
	go func() { output.Wait(); close(whole) }()
	go func() {
		e := end{err: sess.start(line)}
		if e.err == nil {
			go func() {
				_, _ = sess.Write(stdin) // a command need not read it
				_ = sess.CloseWrite()
			}()
			var ok bool
			if e.status, ok = <-sess.exited; !ok {
				e.err = io.ErrUnexpectedEOF
			}
		}
		if errors.Is(e.err, errNoExec) {
			ended <- e
			return
		}
		select {
		case <-whole: // also after a cut: what came before it tells the process group
		case <-time.After(pipeLimit): // a child holds the pipe
		}
		if e.err == nil && !sess.link.alive() { // some of the output may not have come
			e.err = io.ErrUnexpectedEOF
		}
		ended <- e
	}()
	var e end
	select {
	case e = <-ended:
	case <-ctx.Done():
		s.kill(sess, &stderr)
		select {
		case <-ended:
		case <-sess.link.dead:
		case <-time.After(pipeLimit):
		}
		e.err = ctx.Err()
	}
	group := stderr.group()
	res := providers.Result{Stdout: stdout.bytes(), Stderr: s.said(&stderr), Exit: e.status}
	switch {
	case e.err == nil && group == "":
		return res, s.notRun(sess.link.target.user, res)
	case e.err == nil:
		return res, nil
	case ctx.Err() != nil || errors.Is(e.err, errNoExec):
		return res, e.err
	}
	if group != "" {
		s.mu.Lock()
		s.orphans = append(s.orphans, group)
		s.mu.Unlock()
	}
	return res, s.cut(e.err)
}

// notRun is the error of a login shell, or sudo, that did not come as far as the command.
func (s *SSH) notRun(user string, res providers.Result) error {
	text := strings.TrimSpace(string(res.Stderr) + string(res.Stdout))
	text = text[strings.LastIndexByte(text, '\n')+1:]
	if s.sudo(user) {
		return fmt.Errorf("%w as root: user %s cannot use sudo without a password: %s. Log in as root, or allow it in sudoers(5) with NOPASSWD", providers.ErrUnreachable, user, text)
	}
	return fmt.Errorf("%w: the login shell of user %s ended with status %d before the command was run: %s. It has to be a POSIX shell, and nothing of its start files may end it", providers.ErrUnreachable, user, res.Exit, text)
}

// said is what the command itself has written to its standard error. Lines of ours, and what the login shell has written before them, are left out.
func (s *SSH) said(stderr *buffer) []byte {
	text := stderr.bytes()
	for at := range bytes.Lines(text) {
		if f := strings.Fields(string(at)); len(f) == 4 && strings.HasPrefix(f[0], "plumb-at:") {
			s.mu.Lock()
			s.management = f[2]
			s.mu.Unlock()
			_, text, _ = bytes.Cut(text, at)
			break
		}
	}
	if _, after, ok := cutGroup(text); ok {
		return after
	}
	return text
}

// cutGroup finds the line with the process group.
func cutGroup(text []byte) (before, after []byte, ok bool) {
	at := 0
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("plumb:")) && bytes.HasSuffix(line, []byte("\n")) {
			return text[:at], text[at+len(line):], true
		}
		at += len(line)
	}
	return text, nil, false
}

// killScript ends process groups: $1 is a group, $2 the boot that it is of, $3 when its leader was started, and so on. A number that another process has meanwhile is left alone.
const killScript = `boot=$(cat /proc/sys/kernel/random/boot_id)
while [ "$#" -ge 3 ]; do
	now=$(sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20)
	if [ "$2" = "$boot" ] && { [ -z "$now" ] || [ "$now" = "$3" ]; }; then kill -s KILL -- "-$1" 2>/dev/null; fi
	shift 3
done
exit 0
`

func killArgs(groups ...string) []string {
	args := []string{"sh", "-c", killScript, "plumb-kill"}
	for _, g := range groups {
		args = append(args, strings.Fields(g)...)
	}
	return args
}

// kill ends the process group of a session, which goes on otherwise when its session is closed.
func (s *SSH) kill(sess *session, stderr *buffer) {
	limit, cancel := context.WithTimeout(context.Background(), pipeLimit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for stderr.group() == "" { // it has not come so far yet
		select {
		case <-tick.C:
		case <-sess.link.dead:
			return
		case <-limit.Done():
			return
		}
		if len(sess.exited) > 0 {
			return
		}
	}
	s.runOn(limit, sess.link, s.line(killArgs(stderr.group()), sess.link.target.user))
}

// endOrphans ends what a cut left behind, so that it does not work beside what comes next.
func (s *SSH) endOrphans(l *link) {
	s.mu.Lock()
	orphans := slices.Clone(s.orphans)
	s.mu.Unlock()
	if len(orphans) == 0 {
		return
	}
	limit, cancel := context.WithTimeout(context.Background(), pipeLimit)
	defer cancel()
	if !s.runOn(limit, l, s.line(killArgs(orphans...), l.target.user)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphans = s.orphans[len(orphans):]
}

// runOn runs a line on a connection, whatever it prints. false: it was not run.
func (s *SSH) runOn(ctx context.Context, l *link, line string) bool {
	sess, err := l.session(ctx, nil)
	if err != nil {
		return false
	}
	defer sess.Close()
	done := make(chan bool, 1)
	go func() {
		if sess.start(line) != nil {
			done <- false
			return
		}
		go func() { _, _ = io.Copy(io.Discard, sess) }()
		go func() { _, _ = io.Copy(io.Discard, sess.Stderr()) }()
		_, ok := <-sess.exited
		done <- ok
	}()
	select {
	case ok := <-done:
		return ok
	case <-ctx.Done():
		return false
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

// group is what the prelude told: process group, boot, and start of its leader; "" when it has not.
func (b *buffer) group() string {
	text := b.bytes()
	before, after, ok := cutGroup(text)
	if !ok {
		return ""
	}
	f := strings.Fields(strings.TrimPrefix(string(text[len(before):len(text)-len(after)]), "plumb:"))
	if len(f) != 3 || strings.Trim(f[0], "0123456789") != "" {
		return ""
	}
	return strings.Join(f, " ")
}

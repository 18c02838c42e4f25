package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// login is what a host is offered, and what became of each, for the error when nothing was accepted.
type login struct {
	methods []ssh.AuthMethod
	tried   []string // for people
	close   func()
}

// newLogin gathers keys and passwords. What cannot be read is left out, and told of when nothing else is accepted.
func newLogin(t *sshTarget, cfg SSHConfig) *login {
	l := &login{close: func() {}}
	var files, all []ssh.Signer
	var named []ssh.PublicKey
	for _, name := range t.keys {
		s, public, err := readKey(name, cfg.Passphrase)
		if public != nil {
			named = append(named, public)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) && !t.asked:
		case err != nil:
			l.tried = append(l.tried, fmt.Sprintf("key %s, not tried: %s", name, err))
		default:
			l.tried = append(l.tried, "key "+name)
			files = append(files, s)
		}
	}
	same := func(a ssh.PublicKey) func(ssh.PublicKey) bool {
		return func(b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
	}
	held := slices.DeleteFunc(l.agent(t.agent), func(s ssh.Signer) bool {
		return t.only && !slices.ContainsFunc(named, same(s.PublicKey()))
	})
	if t.asked {
		all = append(files, held...)
	} else {
		all = append(held, files...)
	}
	var once []ssh.Signer // servers count tries: MaxAuthTries of sshd_config(5)
	for _, s := range all {
		if !slices.ContainsFunc(once, func(o ssh.Signer) bool { return same(s.PublicKey())(o.PublicKey()) }) {
			once = append(once, s)
		}
	}
	if len(once) > 0 {
		l.methods = append(l.methods, ssh.PublicKeys(once...))
	}
	if cfg.Password != "" {
		l.tried = append(l.tried, "the password")
		l.methods = append(l.methods, ssh.Password(cfg.Password), ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
			answers := make([]string, len(questions))
			for i := range answers {
				answers[i] = cfg.Password
			}
			return answers, nil
		}))
	}
	return l
}

// readKey reads a private key. The public one is known also of some that are locked.
func readKey(name, passphrase string) (ssh.Signer, ssh.PublicKey, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && passphrase == "" {
		return nil, locked.PublicKey, errors.New("it has a passphrase: load it into the agent, or give passphrase in the ssh block")
	}
	if errors.As(err, &locked) {
		if s, err = ssh.ParsePrivateKeyWithPassphrase(data, []byte(passphrase)); err != nil {
			return nil, locked.PublicKey, errors.New("the passphrase does not open it")
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return s, s.PublicKey(), nil
}

// agent asks an agent for its keys.
func (l *login) agent(socket string) []ssh.Signer {
	if socket == "" {
		return nil
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		l.tried = append(l.tried, "no agent: "+err.Error())
		return nil
	}
	l.close = func() { _ = conn.Close() }
	s, err := agent.NewClient(conn).Signers()
	if err != nil {
		l.tried = append(l.tried, "no keys of the agent: "+err.Error())
		return nil
	}
	l.tried = append(l.tried, fmt.Sprintf("%d keys of the agent", len(s)))
	return s
}

// failed is the error when nothing was accepted.
func (l *login) failed(t *sshTarget) error {
	tried := strings.Join(l.tried, "; ")
	if tried == "" {
		tried = "there was nothing to try: no agent, none of the keys that ssh uses by default, no password"
	}
	return fmt.Errorf("log in as %s: refused. Tried: %s", t.user, tried)
}

// hostKeys checks host keys against the known_hosts files that there are.
func hostKeys(t *sshTarget) (ssh.HostKeyCallback, []string, error) {
	var there []string
	for _, f := range t.knownHosts {
		if _, err := os.Stat(f); err == nil {
			there = append(there, f)
		}
	}
	db, err := knownhosts.NewDB(there...)
	if err != nil {
		return nil, nil, fmt.Errorf("known hosts: %w", err)
	}
	check := db.HostKeyCallback()
	// The name counts. The address is asked for all the same, and a connection through another host has none.
	return func(name string, _ net.Addr, key ssh.PublicKey) error {
		return hostKeyError(check(name, sockAddr{"tcp", t.address()}, key), t, name, key)
	}, db.HostKeyAlgorithms(t.address()), nil
}

// keyProblem is a host key that was refused.
type keyProblem struct{ text string }

func (k *keyProblem) Error() string { return k.text }

// hostKeyError says what to do about a key. Nobody is told to switch the check off.
func hostKeyError(err error, t *sshTarget, name string, key ssh.PublicKey) error {
	if err == nil {
		return nil
	}
	print := key.Type() + " " + ssh.FingerprintSHA256(key)
	var k *xknownhosts.KeyError
	switch {
	case knownhosts.IsHostKeyChanged(err) && errors.As(err, &k):
		var known []string
		for _, w := range k.Want {
			known = append(known, fmt.Sprintf("%s:%d has %s %s", w.Filename, w.Line, w.Key.Type(), ssh.FingerprintSHA256(w.Key)))
		}
		return &keyProblem{fmt.Sprintf("the host key has changed: the host shows %s, and %s. Either the host was installed anew or somebody is in between. "+
			"Compare with `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` on the host itself, and replace the line only when it is the same", print, strings.Join(known, ", "))}
	case knownhosts.IsHostUnknown(err):
		file := "~/.ssh/known_hosts"
		if len(t.knownHosts) > 0 {
			file = t.knownHosts[0]
		}
		return &keyProblem{fmt.Sprintf("the host key is not known: the host shows %s. Compare with `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` on the host itself, and when it is the same add this line to %s:\n%s",
			print, file, knownhosts.Line([]string{name}, key))}
	}
	return &keyProblem{fmt.Sprintf("the host key %s is refused: %s", print, err)}
}

// Package sshtest is an SSH server inside the test process, as many as a test wants: each stands for a machine, which is a providers.Conn such as a fake host, or a shell of
// this machine. It can refuse, be slow, and be cut off at any moment.
package sshtest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"plumb/providers"
)

// Options say what kind of server it is. The zero value allows everything.
type Options struct {
	User        string // who may log in; "": root. Commands of others come through sudo
	Password    string // "": keys only
	NoSudo      bool   // sudo wants a password
	NoForward   bool   // AllowStreamLocalForwarding no, AllowTcpForwarding no
	MaxSessions int    // 0: 10, as sshd
	// Before is called with each request before it is served: "open session", "exec", ... It may wait, or cut the server.
	Before func(request string)
}

// Server is a running server. Its folder has what a client needs.
type Server struct {
	Port       int
	Key        string // path of the private key that may log in
	KnownHosts string // path of a known_hosts file with the server's key
	User       string

	options  Options
	machine  providers.Conn // nil: a shell of this machine
	config   *ssh.ServerConfig
	listener net.Listener
	ctx      context.Context // ends with the server
	cancel   context.CancelFunc
	wait     sync.WaitGroup

	said     atomic.Int64
	mu       sync.Mutex
	conns    map[*meter]bool
	logins   int
	sessions int // at most at a time
	budget   int64
	limited  bool
	groups   map[string]context.CancelFunc // of running commands, by process group
	last     int
}

// Start starts a server on 127.0.0.1 that keeps its files in dir. machine nil: commands are run by a shell of this machine, as the user that runs the test.
func Start(dir string, machine providers.Conn, options Options) (*Server, error) {
	s := &Server{options: options, machine: machine, User: options.User, Key: filepath.Join(dir, "id"), KnownHosts: filepath.Join(dir, "known_hosts"),
		conns: map[*meter]bool{}, groups: map[string]context.CancelFunc{}, last: 100000}
	if s.User == "" {
		s.User = "root"
	}
	host, _, err := newKey()
	if err != nil {
		return nil, err
	}
	user, text, err := newKey()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.Key, text, 0o600); err != nil {
		return nil, err
	}
	s.config = &ssh.ServerConfig{
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() != s.User || string(key.Marshal()) != string(user.PublicKey().Marshal()) {
				return nil, errors.New("refused")
			}
			return nil, nil
		},
	}
	if options.Password != "" {
		s.config.PasswordCallback = func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if c.User() != s.User || string(password) != options.Password {
				return nil, errors.New("refused")
			}
			return nil, nil
		}
	}
	s.config.AddHostKey(host)
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.Port = s.listener.Addr().(*net.TCPAddr).Port
	line := knownhosts.Line([]string{s.listener.Addr().String()}, host.PublicKey())
	if err := os.WriteFile(s.KnownHosts, []byte(line+"\n"), 0o600); err != nil {
		_ = s.listener.Close()
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wait.Go(s.accept)
	return s, nil
}

func newKey() (ssh.Signer, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	return signer, pem.EncodeToMemory(block), err
}

// Block is the ssh block of a host in Plumb's language.
func (s *Server) Block() string {
	return fmt.Sprintf("ssh {\n  address     = \"127.0.0.1\"\n  port        = %d\n  user        = %q\n  key         = %q\n  known_hosts = [%q]\n  config      = \"none\"\n}\n", s.Port, s.User, s.Key, s.KnownHosts)
}

// Connections counts those that logged in.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// Said is how many lines of their standard error real shells have sent.
func (s *Server) Said() int64 { return s.said.Load() }

// Sessions is how many were open at a time at most, over all connections.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// Cut cuts all connections, as a network does. New ones are taken.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Conn.Close()
	}
}

// CutAfter cuts all connections once so many bytes more have gone over the server in both directions, the handshake's too. It happens once.
func (s *Server) CutAfter(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget, s.limited = bytes, true
}

// Close ends the server, its connections and its commands.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.cancel()
	s.Cut()
	s.wait.Wait()
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		m := &meter{Conn: c, server: s}
		s.mu.Lock()
		s.conns[m] = true
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			_ = c.Close()
		}
		s.wait.Go(func() {
			s.serve(m)
			_ = m.Conn.Close()
			s.mu.Lock()
			delete(s.conns, m)
			s.mu.Unlock()
		})
	}
}

// meter is a connection that counts.
type meter struct {
	net.Conn
	server *Server
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.spend(n)
	return n, err
}

func (m *meter) Write(b []byte) (int, error) {
	m.spend(len(b))
	return m.Conn.Write(b)
}

func (m *meter) spend(n int) {
	s := m.server
	s.mu.Lock()
	cut := false
	if s.limited {
		if s.budget -= int64(n); s.budget < 0 {
			s.limited, cut = false, true
		}
	}
	s.mu.Unlock()
	if cut {
		s.Cut()
	}
}

func (s *Server) before(request string) {
	if s.options.Before != nil {
		s.options.Before(request)
	}
}

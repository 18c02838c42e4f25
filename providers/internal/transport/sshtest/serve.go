package sshtest

import (
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
)

// serve is one connection.
func (s *Server) serve(c net.Conn) {
	s.before("connect")
	conn, channels, requests, err := ssh.NewServerConn(c, s.config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.logins++
	s.mu.Unlock()
	var wait sync.WaitGroup
	wait.Go(func() {
		for r := range requests {
			s.before(r.Type)
			if r.WantReply {
				_ = r.Reply(r.Type == "keepalive@openssh.com", nil)
			}
		}
	})
	var open atomic.Int32
	limit := int32(s.options.MaxSessions)
	if limit == 0 {
		limit = 10
	}
	for n := range channels {
		s.before("open " + n.ChannelType())
		switch n.ChannelType() {
		case "session":
			now := open.Add(1)
			if now > limit {
				open.Add(-1)
				_ = n.Reject(ssh.ConnectionFailed, "open failed") // what OpenSSH answers
				continue
			}
			s.mu.Lock()
			s.sessions = max(s.sessions, int(now))
			s.mu.Unlock()
			wait.Go(func() {
				defer open.Add(-1)
				s.session(conn, n)
			})
		case "direct-tcpip", "direct-streamlocal@openssh.com":
			wait.Go(func() { s.forward(n) })
		default:
			_ = n.Reject(ssh.UnknownChannelType, "unknown")
		}
	}
	wait.Wait()
}

// forward is a socket of the machine.
func (s *Server) forward(n ssh.NewChannel) {
	if s.options.NoForward {
		_ = n.Reject(ssh.Prohibited, "open failed")
		return
	}
	network, addr := "unix", ""
	if n.ChannelType() == "direct-tcpip" {
		var m struct {
			Host   string
			Port   uint32
			Origin string
			From   uint32
		}
		if ssh.Unmarshal(n.ExtraData(), &m) != nil {
			_ = n.Reject(ssh.ConnectionFailed, "malformed")
			return
		}
		network, addr = "tcp", net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port)))
	} else {
		var m struct {
			Path     string
			Reserved string
			Unused   uint32
		}
		if ssh.Unmarshal(n.ExtraData(), &m) != nil {
			_ = n.Reject(ssh.ConnectionFailed, "malformed")
			return
		}
		addr = m.Path
	}
	to, err := s.dial(network, addr)
	if err != nil {
		_ = n.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	ch, reqs, err := n.Accept()
	if err != nil {
		_ = to.Close()
		return
	}
	go ssh.DiscardRequests(reqs)
	pass(ch, to)
}

// pass carries bytes both ways until either end has ended.
func pass(a, b io.ReadWriteCloser) {
	var wait sync.WaitGroup
	one := func(to, from io.ReadWriteCloser) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}
	wait.Go(func() { one(a, b) })
	wait.Go(func() { one(b, a) })
	wait.Wait()
}

func (s *Server) dial(network, addr string) (net.Conn, error) {
	if s.machine == nil {
		var d net.Dialer
		return d.DialContext(s.ctx, network, addr)
	}
	return s.machine.Dial(s.ctx, network, addr)
}

// session runs one command.
func (s *Server) session(conn *ssh.ServerConn, n ssh.NewChannel) {
	ch, reqs, err := n.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	for r := range reqs {
		s.before(r.Type)
		if r.Type != "exec" {
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
			continue
		}
		var m struct{ Line string }
		if err := ssh.Unmarshal(r.Payload, &m); err != nil {
			_ = r.Reply(false, nil)
			return
		}
		_ = r.Reply(true, nil)
		go func() {
			for r := range reqs {
				if r.WantReply {
					_ = r.Reply(false, nil)
				}
			}
		}()
		connection := "127.0.0.1 1 127.0.0.1 " + strconv.Itoa(s.Port)
		if s.machine == nil {
			s.shell(conn, ch, m.Line, connection)
		} else {
			s.command(ch, m.Line, connection)
		}
		return
	}
}

// status ends a command.
func status(ch ssh.Channel, n int) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ N uint32 }{uint32(n)}))
}

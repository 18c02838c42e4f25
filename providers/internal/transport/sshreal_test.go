package transport_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/transporttest"
)

// sshd is a real OpenSSH server on a port of the loopback interface, with keys of its own.
type sshd struct {
	dir, known, key, user string
	port                  int
}

// startSSHD starts one that ends with the test.
func startSSHD(t testing.TB, options ...string) *sshd {
	t.Helper()
	return startSSHDIn(t, nil, options...)
}

// startSSHDIn starts it by a command that becomes what follows it.
func startSSHDIn(t testing.TB, wrapper []string, options ...string) *sshd {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("needs root and sshd: set PLUMB_REAL=1")
	}
	d := &sshd{dir: shortDir(t), user: "root"}
	if err := os.Chmod(d.dir, 0o755); err != nil { // another user's server reads keys there
		t.Fatal(err)
	}
	hostPublic := writeKey(t, filepath.Join(d.dir, "host"), "")
	userPublic := writeKey(t, filepath.Join(d.dir, "id"), "")
	d.key, d.known = filepath.Join(d.dir, "id"), filepath.Join(d.dir, "known_hosts")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("authorized", userPublic)
	if err := os.Chmod(filepath.Join(d.dir, "authorized"), 0o644); err != nil {
		t.Fatal(err)
	}
	write("known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s", d.port, hostPublic))
	// Without a home bash reads no .bashrc, which takes as long as it takes.
	config := fmt.Sprintf("ListenAddress 127.0.0.1:%d\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"+
		"PermitRootLogin prohibit-password\nPidFile none\nMaxStartups 100\nSetEnv HOME=/nonexistent\n%s\n", d.port, d.dir, d.dir, strings.Join(options, "\n"))
	write("config", config)
	if _, err := os.Stat("/run/sshd"); err != nil { // where it drops its privileges to; a package's unit makes it otherwise
		if err := os.Mkdir("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove("/run/sshd") })
	}
	log, err := os.Create(filepath.Join(d.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(wrapper), "/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(d.dir, "config"))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatalf("openssh-server has to be installed: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = log.Close() })
	deadline := time.Now().Add(time.Minute)
	for {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.port))
		if err == nil {
			_ = c.Close()
			return d
		}
		if time.Now().After(deadline) {
			b, _ := os.ReadFile(log.Name())
			t.Fatalf("sshd does not listen: %s", b)
		}
	}
}

// writeKey makes a key pair and returns the public line.
func writeKey(t testing.TB, name, passphrase string) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(key))
}

func (d *sshd) config() transport.SSHConfig {
	return transport.SSHConfig{Address: "127.0.0.1", User: d.user, Port: d.port, Key: d.key, KnownHosts: []string{d.known}, Config: "none"}
}

func (d *sshd) open(t testing.TB, change func(*transport.SSHConfig)) *transport.SSH {
	t.Helper()
	c := d.config()
	if change != nil {
		change(&c)
	}
	s := transport.NewSSH("dut", c, nil)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// echo serves a unix socket that sends back what it gets.
func echo(t testing.TB) string {
	t.Helper()
	sock := filepath.Join(shortDir(t), "echo.sock")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go echoOn(l)
	return sock
}

// echoOn sends back what it gets, until the listener is closed.
func echoOn(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
	}
}

func TestRealSSH(t *testing.T) {
	d := startSSHD(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Host {
		s := d.open(t, nil)
		t.Cleanup(func() {
			if n := s.Connections(); n > 1 {
				t.Errorf("%d connections were made", n)
			}
		})
		return transporttest.Host{Conn: s, Dir: t.TempDir(), Echo: echo(t), Real: true, Keep: transport.NewLocal("here")}
	})
	s := d.open(t, nil)
	if _, err := s.Run(t.Context(), providers.Cmd{Args: []string{"true"}}); err != nil || s.ManagementAddress() != "127.0.0.1" {
		t.Errorf("the connection came in at %q, %v", s.ManagementAddress(), err)
	}
}

// The server may forbid forwarding: a process passes bytes on instead.
func TestRealSSHWithoutForwarding(t *testing.T) {
	d := startSSHD(t, "AllowStreamLocalForwarding no", "AllowTcpForwarding no", "MaxSessions 3")
	transporttest.Run(t, func(t *testing.T) transporttest.Host {
		return transporttest.Host{Conn: d.open(t, nil), Dir: t.TempDir(), Echo: echo(t), Real: true, Keep: transport.NewLocal("here")}
	})
}

func TestRealSSHRefusals(t *testing.T) {
	d := startSSHD(t)
	other := writeKey(t, filepath.Join(d.dir, "other"), "")
	writeKey(t, filepath.Join(d.dir, "locked"), "secret")
	changed := filepath.Join(d.dir, "changed")
	if err := os.WriteFile(changed, []byte(fmt.Sprintf("# a comment\n[127.0.0.1]:%d %s", d.port, other)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*transport.SSHConfig)
		want   []string
	}{
		"unknown host key": {func(c *transport.SSHConfig) { c.KnownHosts = []string{d.dir + "/none"} }, []string{"the host key is not known", "ssh-ed25519 SHA256:", "add this line to " + d.dir + "/none:\n[127.0.0.1]:"}},
		"changed host key": {func(c *transport.SSHConfig) { c.KnownHosts = []string{changed} }, []string{"the host key has changed", changed + ":2 has ssh-ed25519 SHA256:"}},
		"wrong key":        {func(c *transport.SSHConfig) { c.Key = d.dir + "/other" }, []string{"log in as root: refused", "key " + d.dir + "/other"}},
		"no key":           {func(c *transport.SSHConfig) { c.Key = d.dir + "/none" }, []string{"log in as root: refused", "none, not tried: open"}},
		"locked key":       {func(c *transport.SSHConfig) { c.Key = d.dir + "/locked" }, []string{"it has a passphrase: load it into the agent, or give passphrase"}},
		"wrong passphrase": {func(c *transport.SSHConfig) { c.Key, c.Passphrase = d.dir+"/locked", "hunter2" }, []string{"the passphrase does not open it"}},
		"wrong user":       {func(c *transport.SSHConfig) { c.User = "nosuchuser" }, []string{"log in as nosuchuser: refused"}},
		"wrong password":   {func(c *transport.SSHConfig) { c.Key, c.Password = d.dir+"/other", "hunter2" }, []string{"refused", "the password"}},
		"nobody listens":   {func(c *transport.SSHConfig) { c.Port = 1 }, []string{"connect to 127.0.0.1:1", "refused"}},
		"no such name":     {func(c *transport.SSHConfig) { c.Address = "plumb.invalid" }, []string{"connect to plumb.invalid"}},
	} {
		err := d.open(t, tc.change).Open(t.Context())
		if !errors.Is(err, providers.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range append(tc.want, "dut cannot be reached") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the secret is in the error: %v", name, err)
		}
	}
	s := d.open(t, func(c *transport.SSHConfig) { c.Key = d.dir + "/id" })
	if err := s.Open(t.Context()); err != nil {
		t.Error(err)
	}
}

package transport_test

import (
	"io"
	"net"
	"testing"

	"plumb/providers"
	"plumb/providers/fake"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/sshtest"
	"plumb/providers/internal/transport/transporttest"
)

// A fake host behind a real SSH connection: what the server makes of the client's scripts is what they do.
func TestSSHToFakeHost(t *testing.T) {
	for name, o := range map[string]sshtest.Options{"root": {}, "sudo": {User: "plumber", NoForward: true}} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Host {
				machine, err := fake.Open(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = machine.Close() })
				if _, err := machine.Run(t.Context(), providers.Cmd{Args: []string{"mkdir", "/tmp/test"}}); err != nil {
					t.Fatal(err)
				}
				machine.Serve("/run/echo.sock", func(c net.Conn) { _, _ = io.Copy(c, c) })
				return transporttest.Host{Conn: client(t, serve(t, machine, o), nil), Dir: "/tmp/test", Echo: "/run/echo.sock", Keep: machine}
			})
		})
	}
}

func TestSSHWithoutSudo(t *testing.T) {
	machine, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, machine, sshtest.Options{User: "plumber", NoSudo: true})
	c := client(t, s, nil)
	_, err = c.Run(t.Context(), providers.Cmd{Args: []string{"true"}})
	wants(t, err, "dut", "cannot be reached as root", "user plumber cannot use sudo without a password", "sudo: a password is required", "NOPASSWD")
	never := client(t, s, func(c *transport.SSHConfig) { c.Sudo = transport.SudoNever })
	if _, err := never.Run(t.Context(), providers.Cmd{Args: []string{"true"}}); err != nil {
		t.Error(err)
	}
}

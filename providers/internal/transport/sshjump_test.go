package transport_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/sshtest"
)

// sshConfig writes an ssh_config and returns its path.
func sshConfig(t *testing.T, text string) string {
	t.Helper()
	name := t.TempDir() + "/config"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// hostOf is the section of a server in an ssh_config.
func hostOf(alias string, s *sshtest.Server, more string) string {
	return fmt.Sprintf("Host %s\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s\n IdentityAgent none\n UserKnownHostsFile %s\n GlobalKnownHostsFile none\n%s\n", alias, s.Port, s.User, s.Key, s.KnownHosts, more)
}

func runTrue(t *testing.T, c *transport.SSH) error {
	t.Helper()
	_, err := c.Run(t.Context(), providers.Cmd{Args: []string{"true"}})
	return err
}

func TestSSHConfigLeadsThroughJumpHosts(t *testing.T) {
	first, second, last := serve(t, nil, sshtest.Options{User: "one"}), serve(t, nil, sshtest.Options{User: "two"}), serve(t, nil, sshtest.Options{})
	config := sshConfig(t, hostOf("first", first, "")+hostOf("second", second, " ProxyJump first")+hostOf("last", last, " ProxyJump second\n StrictHostKeyChecking no"))
	c := transport.NewSSH("dut", transport.SSHConfig{Address: "last", Config: config}, nil)
	t.Cleanup(func() { _ = c.Close() })
	if err := runTrue(t, c); err != nil {
		t.Fatal(err)
	}
	for i, s := range []*sshtest.Server{first, second, last} {
		if s.Connections() != 1 {
			t.Errorf("%d connections to server %d", s.Connections(), i)
		}
	}
	// A cut on the way is one of the host; the next call goes the whole way again.
	first.Cut()
	if err := runTrue(t, c); err != nil {
		t.Error(err)
	}
	second.Close()
	first.Cut()
	wants(t, runTrue(t, c), "dut cannot be reached: jump host second: connect to 127.0.0.1:")
}

func TestSSHConfigRefusals(t *testing.T) {
	s := serve(t, nil, sshtest.Options{})
	empty := t.TempDir() + "/known_hosts"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"round":        {hostOf("dut", s, " ProxyJump other") + hostOf("other", s, " ProxyJump dut"), []string{"ProxyJump goes round: dut, other, dut"}},
		"command":      {hostOf("dut", s, " ProxyCommand nc %h %p"), []string{"has a ProxyCommand, which Plumb does not run: use ProxyJump there, or jump = host.NAME"}},
		"match":        {hostOf("dut", s, "Match exec true"), []string{"Match", "give the ssh block a config of its own"}},
		"port":         {strings.Replace(hostOf("dut", s, ""), "Port ", "Port x", 1), []string{"Port"}},
		"bad jump":     {hostOf("dut", s, " ProxyJump host:0"), []string{`"0" is no port`}},
		"unknown key":  {strings.Replace(hostOf("dut", s, " StrictHostKeyChecking accept-new"), s.KnownHosts, empty, 1), []string{"the host key is not known", "SHA256:", "add this line to " + empty}},
		"checking off": {strings.Replace(hostOf("dut", s, " StrictHostKeyChecking no"), s.KnownHosts, "/dev/null", 1), []string{"the host key is not known"}},
	} {
		c := transport.NewSSH("dut", transport.SSHConfig{Address: "dut", Config: sshConfig(t, tc.text)}, nil)
		t.Run(name, func(t *testing.T) { wants(t, c.Open(t.Context()), tc.want...) })
		_ = c.Close()
	}
	if s.Connections() != 0 {
		t.Errorf("%d logins", s.Connections())
	}
}

// jump = host.NAME: the other host's own connection carries this one.
func TestSSHThroughAnotherHost(t *testing.T) {
	for name, o := range map[string]sshtest.Options{"forwarded": {}, "relayed": {NoForward: true}} {
		t.Run(name, func(t *testing.T) {
			gate, inner := serve(t, nil, o), serve(t, nil, sshtest.Options{})
			way := client(t, gate, nil)
			c := transport.NewSSH("inner", configOf(inner), way.Dial)
			t.Cleanup(func() { _ = c.Close() })
			if err := runTrue(t, c); err != nil {
				t.Fatal(err)
			}
			gate.Cut()
			if err := runTrue(t, c); err != nil {
				t.Error(err)
			}
			gate.Close()
			wants(t, runTrue(t, c), "inner cannot be reached", "dut cannot be reached")
		})
	}
}

func TestSSHPassword(t *testing.T) {
	s := serve(t, nil, sshtest.Options{Password: "hunter2"})
	none := func(c *transport.SSHConfig) { c.Key = s.Key + ".none" }
	ok := client(t, s, func(c *transport.SSHConfig) { none(c); c.Password = "hunter2" })
	if err := runTrue(t, ok); err != nil {
		t.Error(err)
	}
	err := client(t, s, func(c *transport.SSHConfig) { none(c); c.Password = "swordfish" }).Open(t.Context())
	wants(t, err, "log in as root: refused", "the password")
	if strings.Contains(fmt.Sprint(err), "swordfish") {
		t.Error("the password is in the error:", err)
	}
}

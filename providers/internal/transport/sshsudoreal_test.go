package transport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/transporttest"
)

// startSSHDFor starts a server that has a user of its own, who may or may not use sudo. It sees its own /etc/passwd and the like, in a mount namespace: nothing of this machine is
// changed.
func startSSHDFor(t *testing.T, user, sudoers string, options ...string) *sshd {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("needs root, sshd and sudo: set PLUMB_REAL=1")
	}
	if _, err := os.Stat("/etc/sudoers.d"); err != nil {
		t.Fatalf("sudo has to be installed: %v", err)
	}
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mounts := ""
	for name, line := range map[string]string{
		"passwd": user + ":x:60123:60123::/:/bin/sh\n",
		"group":  user + ":x:60123:\n",
		"shadow": user + ":*:19000:0:99999:7:::\n",
	} {
		old, err := os.ReadFile("/etc/" + name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat("/etc/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(old, line...), info.Mode()); err != nil {
			t.Fatal(err)
		}
		mounts += fmt.Sprintf("mount --bind %s/%s /etc/%s\n", dir, name, name)
	}
	if err := os.Mkdir(dir+"/sudoers.d", 0o750); err != nil {
		t.Fatal(err)
	}
	if sudoers != "" {
		if err := os.WriteFile(dir+"/sudoers.d/plumb", []byte(sudoers+"\n"), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	mounts += fmt.Sprintf("mount --bind %s/sudoers.d /etc/sudoers.d\n", dir)
	d := startSSHDIn(t, []string{"unshare", "--mount", "--propagation", "private", "sh", "-ec", mounts + `exec "$@"`, "sh"}, options...)
	d.user = user
	return d
}

func TestRealSSHWithSudo(t *testing.T) {
	d := startSSHDFor(t, "plt-ssh", "plt-ssh ALL=(root) NOPASSWD: ALL")
	transporttest.Run(t, func(t *testing.T) transporttest.Host {
		return transporttest.Host{Conn: d.open(t, nil), Dir: t.TempDir(), Echo: echo(t), Real: true, Keep: transport.NewLocal("here")}
	})
	for sudo, want := range map[transport.Sudo]string{transport.SudoAuto: "0\n", transport.SudoNever: "60123\n"} {
		s := d.open(t, func(c *transport.SSHConfig) { c.Sudo = sudo })
		if res, err := s.Run(t.Context(), providers.Cmd{Args: []string{"id", "-u"}}); err != nil || string(res.Stdout) != want {
			t.Errorf("sudo %q: %q, %v", sudo, res.Stdout, err)
		}
	}
	never := d.open(t, func(c *transport.SSHConfig) { c.Sudo = transport.SudoNever })
	got, err := never.ReadFiles(t.Context(), "/etc/shadow", "/proc/version", "/etc/sudoers.d/plumb")
	if len(got) != 1 || err == nil || !strings.Contains(err.Error(), "read /etc/shadow: permission denied") || !strings.Contains(err.Error(), "read /etc/sudoers.d/plumb: permission denied") {
		t.Errorf("an ordinary user reads %d files, %v", len(got), err)
	}
}

func TestRealSSHWithoutSudo(t *testing.T) {
	for name, sudoers := range map[string]string{"not allowed": "", "with a password": "plt-ssh ALL=(root) ALL"} {
		d := startSSHDFor(t, "plt-ssh", sudoers)
		_, err := d.open(t, nil).Run(t.Context(), providers.Cmd{Args: []string{"true"}})
		if err == nil {
			t.Errorf("%s: it was run", name)
			continue
		}
		wants(t, err, "true on dut: cannot be reached as root: user plt-ssh cannot use sudo without a password: sudo: ", "NOPASSWD")
	}
}

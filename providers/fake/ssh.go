package fake

import (
	"plumb/providers"
	"plumb/providers/internal/transport/sshtest"
)

// SSHOptions say what kind of SSH server a fake host has.
type SSHOptions = sshtest.Options

// SSHServer is the SSH server of a fake host. Its method Block is what stands in the host block.
type SSHServer = sshtest.Server

// ServeSSH starts a real SSH server for a host, on 127.0.0.1 with a port and keys of its own, which it keeps in dir. A test may have as many as it wants, and closes them.
func ServeSSH(dir string, host providers.Conn, options SSHOptions) (*SSHServer, error) {
	return sshtest.Start(dir, host, options)
}

// Package labhost gives tests the virtual host that `make lab` starts: a machine with an IOMMU, NICs of its own, kernel modules, systemd and a boot loader, under software emulation.
// Tests that want it have Lab in their names; `make test-lab` runs them. See docs/lab.md.
package labhost

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/internal/transport"
)

// Variable names the folder of the host that is up, in the environment of tests.
const Variable = "PLUMB_LAB"

// Host is where the virtual host is.
type Host struct {
	Address    string // of the loopback interface
	Port       int
	Key        string // private key of root
	KnownHosts string
	NICs       []NIC // two igb on NUMA node 0, then two e1000e on node 1
}

// NIC is a NIC of the virtual host. Each Ethernet frame that it sends is a UDP datagram from Host to Outside, and each such datagram from Outside to Host is a frame that it receives.
type NIC struct {
	PCI           string
	Outside, Host netip.AddrPort
}

// Find finds the host. It skips the test where there is none, and fails it where the folder is not what it should be.
func Find(t testing.TB) Host {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		t.Skip("needs the virtual host of `make lab`: run `make test-lab`")
	}
	h := Host{Key: filepath.Join(dir, "id"), KnownHosts: filepath.Join(dir, "known_hosts")}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("%s: %v", Variable, err)
		}
		return strings.TrimSpace(string(b))
	}
	at, err := netip.ParseAddrPort(read("address"))
	if err != nil {
		t.Fatalf("%s/address: %v", dir, err)
	}
	h.Address, h.Port = at.Addr().String(), int(at.Port())
	for line := range strings.Lines(read("nics")) {
		var n NIC
		var outside, host string
		if _, err := fmt.Sscan(line, &n.PCI, &outside, &host); err != nil {
			t.Fatalf("%s/nics: %q: %v", dir, line, err)
		}
		if n.Outside, err = netip.ParseAddrPort(outside); err == nil {
			n.Host, err = netip.ParseAddrPort(host)
		}
		if err != nil {
			t.Fatalf("%s/nics: %q: %v", dir, line, err)
		}
		h.NICs = append(h.NICs, n)
	}
	return h
}

// Open connects to the host. The connection ends with the test.
func Open(t testing.TB) *transport.SSH {
	t.Helper()
	h := Find(t)
	s := transport.NewSSH("dut", transport.SSHConfig{Address: h.Address, Port: h.Port, User: "root", Key: h.Key, KnownHosts: []string{h.KnownHosts}, Config: "none"}, nil)
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Shared is one connection for all that a test opens: under emulation a login takes seconds, and suites open a host dozens of times. It ends with the test.
func Shared(t testing.TB) func(testing.TB) providers.Conn {
	t.Helper()
	s := Open(t)
	return func(testing.TB) providers.Conn { return shared{s} }
}

// shared is a connection that its users do not end.
type shared struct{ *transport.SSH }

func (shared) Close() error { return nil }

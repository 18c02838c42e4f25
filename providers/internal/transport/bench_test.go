package transport_test

import (
	"testing"

	"plumb/providers"
	"plumb/providers/internal/transport"
)

// BenchmarkReadFiles reads what facts and processes need, here and through a real sshd on this machine (with PLUMB_REAL=1).
func BenchmarkReadFiles(b *testing.B) {
	each := func(name string, open func(*testing.B) providers.Conn) {
		b.Run(name, func(b *testing.B) {
			c := open(b)
			files := 0
			for b.Loop() {
				m, err := c.ReadFiles(b.Context(), "/proc/[0-9]*/stat", "/proc/[0-9]*/cmdline", "/sys/devices/system/cpu/cpu[0-9]*/topology/*", "/sys/bus/pci/devices/*/uevent")
				if err != nil {
					b.Fatal(err)
				}
				files = len(m)
			}
			b.ReportMetric(float64(files), "files")
		})
	}
	each("here", func(*testing.B) providers.Conn { return transport.NewLocal("here") })
	each("ssh", func(b *testing.B) providers.Conn { return startSSHD(b).open(b, nil) })
}

func BenchmarkRun(b *testing.B) {
	each := func(name string, open func(*testing.B) providers.Conn) {
		b.Run(name, func(b *testing.B) {
			c := open(b)
			for b.Loop() {
				if _, err := c.Run(b.Context(), providers.Cmd{Args: []string{"true"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	each("here", func(*testing.B) providers.Conn { return transport.NewLocal("here") })
	each("ssh", func(b *testing.B) providers.Conn { return startSSHD(b).open(b, nil) })
}

func BenchmarkConnect(b *testing.B) {
	d := startSSHD(b)
	for b.Loop() {
		s := transport.NewSSH("dut", d.config(), nil)
		if err := s.Open(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
}

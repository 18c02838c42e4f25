package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/providers/labhost"
	"plumb/stages/plan"
)

// switchBed is a testbed on the virtual host (PLUMB_LAB) whose variable moves it between the kernel's datapath and DPDK.
const switchBed = `
variable "datapath" {
  default = "dpdk"
}
locals {
  dpdk = var.datapath == "dpdk"
}
host "dut" {
  ssh {
    address     = %q
    port        = %d
    user        = "root"
    key         = %q
    known_hosts = [%q]
    config      = "none"
  }
}
resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 128, "1" = 256 }
}
resource "host_module" "openvswitch" {
  name = "openvswitch"
}
resource "nic_driver" "p" {
  count  = 2
  pci    = [%q, %q][count.index]
  driver = local.dpdk ? "vfio-pci" : "kernel"
}
resource "ovs_switch" "dut" {
  dpdk {
    socket_mem   = [128, 256]
    socket_limit = [128, 256]
    lcores       = "0"
    pmd_cores    = "3"
  }
  depends_on = [host_module.openvswitch]
}
resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = local.dpdk ? "netdev" : "system"
}
resource "ovs_port" "p" {
  count   = 2
  bridge  = ovs_bridge.br0.name
  name    = local.dpdk ? "dpdk${count.index}" : nic_driver.p[count.index].interface
  type    = local.dpdk ? "dpdk" : "system"
  devargs = local.dpdk ? nic_driver.p[count.index].pci : null
  ofport  = count.index + 1
}
resource "host_command" "up" {
  count = local.dpdk ? 0 : 2
  do    = ["ip", "link", "set", "dev", nic_driver.p[count.index].interface, "up", "promisc", "on"]
  undo  = ["ip", "link", "set", "dev", nic_driver.p[count.index].interface, "down", "promisc", "off"]
}
resource "ovs_flows" "br0" {
  bridge     = ovs_bridge.br0.name
  flows      = ["in_port=1 actions=output:2", "in_port=2 actions=output:1"]
  depends_on = [ovs_port.p]
}
`

// TestLabLongDatapathSwitch moves a testbed from DPDK to the kernel's datapath and back. Each time frames go through both ways, the next plan is empty, and no more is changed than has to be. In the end the host is as it
// was, but for modules that the kernel loads by itself and keeps.
func TestLabLongDatapathSwitch(t *testing.T) {
	lab := labhost.Find(t)
	b := &bed{t: t, dir: t.TempDir()}
	config := fmt.Sprintf(switchBed, lab.Address, lab.Port, lab.Key, lab.KnownHosts, lab.NICs[2].PCI, lab.NICs[3].PCI)
	if err := os.WriteFile(filepath.Join(b.dir, "main.plumb.hcl"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	before := settled(t, b.snapshot())
	t.Cleanup(func() {
		b.must("destroy", "-auto-approve")
		if after := settled(t, b.snapshot()); !slices.Equal(before, after) {
			t.Errorf("the host is not as it was:\n%s\nwas:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
	})
	left, right := plug(t, lab.NICs[2]), plug(t, lab.NICs[3])
	for i, datapath := range []string{"dpdk", "kernel", "dpdk"} {
		choice := []string{"-var", "datapath=" + datapath}
		if i > 0 {
			onlyTheSwitch(t, b.plan(choice...), datapath)
		}
		b.must(append([]string{"apply", "-auto-approve"}, choice...)...)
		b.empty("after the switch to "+datapath, choice...)
		for name, came := range map[string]int{"there": through(t, left, right), "back": through(t, right, left)} {
			if came < 99 { // the emulated NIC may lose one now and then
				t.Errorf("%s: of 100 frames %d went %s", datapath, came, name)
			}
		}
	}
}

// onlyTheSwitch checks that a plan touches NICs, ports, the bridge and its flows, and nothing else.
func onlyTheSwitch(t *testing.T, p *plan.Plan, to string) {
	t.Helper()
	want := map[string]plan.Action{"nic_driver.p[0]": plan.Update, "nic_driver.p[1]": plan.Update, "ovs_bridge.br0": plan.Update, "ovs_port.p[0]": plan.Replace, "ovs_port.p[1]": plan.Replace, "ovs_flows.br0": plan.Reapply}
	commands := plan.Create
	if to == "dpdk" {
		commands = plan.Delete
	}
	want["host_command.up[0]"], want["host_command.up[1]"] = commands, commands
	got := changes(p)
	for a, c := range got {
		if c.Action != want[a] {
			t.Errorf("to %s: %s of %s", to, c.Action, a)
		}
	}
	if len(got) != len(want) {
		t.Errorf("to %s: %d changes, want %d", to, len(got), len(want))
	}
}

// settled is a snapshot without modules.
func settled(t *testing.T, snapshot string) []string {
	t.Helper()
	var hosts map[string][]string
	if err := json.Unmarshal([]byte(snapshot), &hosts); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(hosts["dut"], func(line string) bool { return strings.HasPrefix(line, "module ") })
}

// cable is the outer end of a NIC of the virtual host: each datagram is an Ethernet frame.
type cable struct {
	t    *testing.T
	conn *net.UDPConn
}

func plug(t *testing.T, nic labhost.NIC) *cable {
	t.Helper()
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(nic.Outside), net.UDPAddrFromAddrPort(nic.Host))
	if err != nil {
		t.Fatalf("plug into %s: %v", nic.PCI, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &cable{t, conn}
}

// frame is the nth test frame: broadcast, so that no NIC filters it, with the EtherType for local experiments (IEEE 802, 0x88b5).
func frame(n int) []byte {
	f := make([]byte, 60)
	copy(f, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x50, 0x4c, 0x55, 0x4d, 0x42, 0x88, 0xb5})
	copy(f[14:], fmt.Sprintf("plumb %d", n))
	return f
}

// receive waits for the nth frame, and takes no notice of others.
func (c *cable) receive(n int, limit time.Duration) bool {
	until, buf := time.Now().Add(limit), make([]byte, 4096)
	for {
		_ = c.conn.SetReadDeadline(until)
		k, err := c.conn.Read(buf)
		if err != nil {
			return false
		}
		if k >= 40 && bytes.Equal(buf[:40], frame(n)[:40]) {
			return true
		}
	}
}

// through sends frames into one NIC until the first has come out of the other, since links need seconds to come up; and then a hundred, one at a time, for nothing is asked of the emulated NICs'
// speed. It says how many of those came.
func through(t *testing.T, from, to *cable) int {
	t.Helper()
	send := func(n int) {
		if _, err := from.conn.Write(frame(n)); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for n := 0; ; n++ {
		if send(n); to.receive(n, 200*time.Millisecond) {
			break
		}
		if time.Now().After(deadline) {
			t.Error("no frame came through within a minute")
			return 0
		}
	}
	came := 0
	for n := 1000; n < 1100; n++ {
		if send(n); to.receive(n, 5*time.Second) {
			came++
		}
	}
	return came
}

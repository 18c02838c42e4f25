# With two hosts each resource has to say where it lives.
host "dut" {}
host "tester" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

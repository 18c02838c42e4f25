# This version manages the machine that it runs on.
host "dut" {
  ssh {
    address = "192.0.2.10"
  }
}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

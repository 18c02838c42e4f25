host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

moved {
  from = ovs_bridge.old
  to   = ovs_bridge.br0
}

host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "patch" {
  bridge  = ovs_bridge.br0.name
  name    = "to-br1"
  type    = "patch"
  peer    = "to-br0"
  devargs = "0000:01:00.0"
  rxqs    = 2
}

host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "a" {
  bridge = ovs_bridge.br0.name
  name   = "p0"
  type   = "internal"
}

resource "ovs_port" "b" {
  bridge = ovs_bridge.br0.name
  name   = "p0"
  type   = "internal"
}

host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "t0" {
  bridge = ovs_bridge.br0.name
  name   = "t0"
  type   = "internal"
  ofport = 1
}

resource "ovs_port" "t1" {
  bridge = ovs_bridge.br0.name
  name   = "t1"
  type   = "internal"
  ofport = 1
}

host "dut" {}

generator "dummy" "model" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "p0" {
  bridge = ovs_bridge.br0.name
  name   = "p0"
  type   = "internal"
}

benchmark "p2p" {
  generator = generator.dummy.modle
  path      = [ovs_port.p0]
  continuous {}
}

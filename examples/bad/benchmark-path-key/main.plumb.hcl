# There is no instance "p3".
host "dut" {}

generator "dummy" "model" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "p" {
  for_each = { p0 = 1, p1 = 2 }
  bridge   = ovs_bridge.br0.name
  name     = each.key
  type     = "internal"
  ofport   = each.value
}

benchmark "p2p" {
  generator = generator.dummy.model
  path      = [ovs_port.p["p0"], ovs_port.p["p3"]]
  continuous {}
}

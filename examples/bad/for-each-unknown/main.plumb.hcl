# ofport is chosen by Open vSwitch, so that it is known only after apply.
host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "p0" {
  bridge = ovs_bridge.br0.name
  name   = "p0"
  type   = "internal"
}

resource "plumb_data" "by_port" {
  for_each = toset([tostring(ovs_port.p0.ofport)])
  input    = each.key
}

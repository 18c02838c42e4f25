host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "vhost0" {
  bridge = ovs_bridge.br0.name
  name   = "vhost0"
  type   = "dpdkvhostuser"
}

host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

variable "bridge" {
  default = ovs_bridge.br0.name
}

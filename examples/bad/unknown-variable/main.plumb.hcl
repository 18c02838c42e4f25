variable "datapath" {
  default = "netdev"
}

host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = var.datapaht
}

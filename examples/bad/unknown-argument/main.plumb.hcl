host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapth  = "netdev"
}

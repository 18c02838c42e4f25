host "dut" {}

resource "ovs_bridge" {
  name = "br0"
}

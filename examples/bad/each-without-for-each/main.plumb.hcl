host "dut" {}

resource "ovs_bridge" "br" {
  name = each.key
}

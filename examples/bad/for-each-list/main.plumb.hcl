host "dut" {}

resource "ovs_bridge" "br" {
  for_each = ["br0", "br1"]
  name     = each.key
}

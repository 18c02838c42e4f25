host "dut" {}

resource "ovs_bridge" "br" {
  count    = 2
  for_each = toset(["br0", "br1"])
  name     = each.key
}

host "dut" {}

resource "ovs_flows" "br0" {
  bridge = "br0"
  dynamic "generate" {
    for_each = [1, 2]
  }
}

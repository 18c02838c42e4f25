host "dut" {}

resource "ovs_flows" "br0" {
  bridge = "br0"
  dynamic "generates" {
    for_each = [1, 2]
    content {
      count   = 10
      actions = "output:${generates.value}"
    }
  }
}

# Inside of content the element is called as the block: generate.value.
host "dut" {}

resource "ovs_flows" "br0" {
  bridge = "br0"
  dynamic "generate" {
    for_each = [1, 2]
    content {
      count   = 10
      actions = "output:${each.value}"
    }
  }
}

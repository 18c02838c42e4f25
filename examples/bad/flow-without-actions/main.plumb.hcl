host "dut" {}

resource "ovs_flows" "br0" {
  bridge = "br0"
  flows  = ["in_port=1"]
}

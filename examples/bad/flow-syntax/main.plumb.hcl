host "dut" {}

resource "ovs_flows" "br0" {
  bridge = "br0"
  flows = [
    "in_port=1 actions=output:2",
    "in_prt=2 actions=output:1",
  ]
}

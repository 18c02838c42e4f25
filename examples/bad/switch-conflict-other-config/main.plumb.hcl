host "dut" {}

resource "ovs_switch" "dut" {
  flow_limit   = 100000
  other_config = { flow-limit = "200000" }
}

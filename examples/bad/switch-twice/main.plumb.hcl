host "dut" {}

resource "ovs_switch" "a" {
  flow_limit = 1000
}

resource "ovs_switch" "b" {
  max_idle = 1000
}

host "dut" {}

resource "ovs_switch" "dut" {
  dpdk_version = "22.11"
}

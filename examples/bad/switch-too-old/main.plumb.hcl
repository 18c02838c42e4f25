host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    pmd_sleep_max = "50"
  }
}

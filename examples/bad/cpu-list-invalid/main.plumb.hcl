host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    pmd_cores = "1-"
  }
}

host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    pmd_cores = "1"
  }
  dpdk {
    lcores = "0"
  }
}

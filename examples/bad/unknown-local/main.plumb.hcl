locals {
  pmd_cores = "1,2"
}

host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    pmd_cores = local.pmd_core
  }
}

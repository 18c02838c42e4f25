host "dut" {}

resource "ovs_switch" "dut" {
  dpkd {
    pmd_cores = "1"
  }
}

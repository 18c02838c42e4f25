# dpdk is a block: no "=".
host "dut" {}

resource "ovs_switch" "dut" {
  dpdk = {
    pmd_cores = "1"
  }
}

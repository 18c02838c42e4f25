host "dut" {}

resource "dpdk_testpmd" "vnf" {
  cores = "3,4"
}

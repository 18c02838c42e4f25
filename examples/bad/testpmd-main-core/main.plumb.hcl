# main_core is one of cores.
host "dut" {}

resource "dpdk_testpmd" "vnf" {
  cores     = "3,4"
  main_core = 0
  port {
    vdev = "net_null0"
  }
}

host "dut" {}

resource "dpdk_testpmd" "vnf" {
  cores        = "3,4"
  forward_mode = "mac-swap"
  port {
    vdev = "net_null0"
  }
}

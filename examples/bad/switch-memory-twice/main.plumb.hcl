host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem = [512]
    alloc_mem  = 1024
  }
}

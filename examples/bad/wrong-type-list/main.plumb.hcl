host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem = 1024
  }
}

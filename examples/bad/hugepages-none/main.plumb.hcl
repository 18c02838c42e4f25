# The host has no hugepages, and nothing here provides any.
host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem   = [512, 512]
    socket_limit = [512, 512]
  }
}

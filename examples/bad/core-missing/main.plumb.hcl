# The host of the test has the cores 0 to 7.
host "dut" {}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 512 }
}

resource "ovs_switch" "dut" {
  dpdk {
    pmd_cores    = "7-8"
    socket_mem   = [512]
    socket_limit = [512]
  }
}

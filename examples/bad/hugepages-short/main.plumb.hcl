# 1024 MB are 512 pages of 2 MB.
host "dut" {}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 256 }
}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem   = [1024]
    socket_limit = [1024]
  }
}

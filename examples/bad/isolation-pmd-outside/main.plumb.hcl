# The PMD core is not among the isolated ones.
host "dut" {}

resource "host_cpu_isolation" "dut" {
  cores = "2-3"
}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 1024 }
}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem = [512]
    pmd_cores  = "1,2"
  }
}

# The host of the test has 16 GB on each NUMA node.
host "dut" {}

resource "host_hugepages" "dut" {
  size  = "1G"
  pages = { "0" = 64 }
}

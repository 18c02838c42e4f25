# The host of the test has the NUMA nodes 0 and 1.
host "dut" {}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "2" = 16 }
}

host "dut" {}

resource "host_hugepages" "dut" {
  size  = "3M"
  pages = { "0" = 16 }
}

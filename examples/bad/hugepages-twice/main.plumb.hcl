host "dut" {}

resource "host_hugepages" "a" {
  size  = "2M"
  pages = { "0" = 16 }
}

resource "host_hugepages" "b" {
  size  = "2M"
  pages = { "0" = 32 }
}

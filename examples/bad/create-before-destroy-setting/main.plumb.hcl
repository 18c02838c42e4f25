host "dut" {}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 16 }
  lifecycle {
    create_before_destroy = true
  }
}

host "dut" {}

resource "ovs_port" "p0" {
  name = "p0"
  type = "internal"
}

host "dut" {}

resource "ovs_brige" "br0" {
  name = "br0"
}

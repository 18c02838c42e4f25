host "dut" {}

resource "ovs_bridge" "br0" {
  name   = "br0"
  hwaddr = "52:54:00:00:01"
}

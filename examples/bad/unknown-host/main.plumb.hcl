host "dut" {}

resource "ovs_bridge" "br0" {
  host = host.duct
  name = "br0"
}

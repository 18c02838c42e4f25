host "dut" {}

resource "ovs_bridge" "br0" {
  name = "bridge-of-the-test"
}

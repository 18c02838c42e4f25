# other_config is a map: with "=".
host "dut" {}

resource "ovs_bridge" "br0" {
  name = "br0"
  other_config {
    mac-aging-time = "100"
  }
}

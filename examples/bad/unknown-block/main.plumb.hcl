host "dut" {}

resources "ovs_bridge" "br0" {
  name = "br0"
}

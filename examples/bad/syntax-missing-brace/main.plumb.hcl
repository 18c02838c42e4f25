# The switch's block is not closed.
host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    pmd_cores = "1"

resource "ovs_bridge" "br0" {
  name = "br0"
}

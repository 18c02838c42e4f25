# What is reset is a resource, not one of its attributes.
host "dut" {}

generator "dummy" "model" {}

resource "ovs_switch" "dut" {}

benchmark "reset" {
  generator = generator.dummy.model
  reset {
    target = ovs_switch.dut.dpdk
  }
}

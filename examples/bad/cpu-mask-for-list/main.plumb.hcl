# Masks are what OVS wants; here cores are listed.
host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    pmd_cores = "0x6"
  }
}

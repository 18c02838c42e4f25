host "dut" {}

resource "ovs_switch" "dut" {
  dpdk {
    lcores       = "0"
    socket_mem   = [512]
    socket_limit = [512]
    extra        = "--no-pci --socket-mem 1024"
  }
}

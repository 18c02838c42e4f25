# rx_steering came with Open vSwitch 3.2; the host has 3.1.0, which would ignore it.
host "dut" {}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 1024 }
}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem = [512]
    pmd_cores  = "1"
  }
}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "p" {
  bridge      = ovs_bridge.br0.name
  name        = "n0"
  type        = "dpdk"
  devargs     = "net_null0"
  rx_steering = "rss+lacp"
}

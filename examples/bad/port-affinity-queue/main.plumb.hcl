# Two queues are number 0 and 1.
host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "p0" {
  bridge   = ovs_bridge.br0.name
  name     = "p0"
  type     = "dpdk"
  devargs  = "0000:01:00.0"
  rxqs     = 2
  affinity = { 1 = 1, 2 = 2 }
}

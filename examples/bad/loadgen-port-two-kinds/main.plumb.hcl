# A port is a vhost-user socket or an interface.
host "dut" {}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 1024 }
}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem   = [512]
    socket_limit = [512]
    lcores       = "0"
    pmd_cores    = "1,2"
  }
}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "v" {
  for_each = { v0 = 1, v1 = 2 }
  bridge   = ovs_bridge.br0.name
  name     = each.key
  type     = "dpdkvhostuserclient"
  ofport   = each.value
}

generator "loadgen" "tg" {
  cpus = "3"
  port {
    vhost_user = ovs_port.v["v0"].vhost_server_path
    interface  = "veth0"
  }
  port {
    vhost_user = ovs_port.v["v1"].vhost_server_path
  }
}

# Two network functions on one socket.
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

resource "ovs_port" "v0" {
  bridge = ovs_bridge.br0.name
  name   = "v0"
  type   = "dpdkvhostuserclient"
}

resource "dpdk_testpmd" "a" {
  cores = "3,4"
  port {
    vhost_user = ovs_port.v0.vhost_server_path
  }
}

resource "dpdk_testpmd" "b" {
  cores = "5,6"
  port {
    vhost_user = ovs_port.v0.vhost_server_path
  }
}

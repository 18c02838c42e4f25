# Jumbo frames through ports that take 1500 bytes.
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

resource "ovs_port" "t" {
  count  = 2
  bridge = ovs_bridge.br0.name
  name   = "t${count.index}"
  type   = "dpdkvhostuserclient"
  mtu    = count.index == 0 ? 9000 : null
}

generator "loadgen" "tg" {
  cpus = "2"
  port { vhost_user = ovs_port.t[0].vhost_server_path }
  port { vhost_user = ovs_port.t[1].vhost_server_path }
}

benchmark "p2p" {
  generator = generator.loadgen.tg
  path      = [ovs_port.t[0], ovs_port.t[1]]
  traffic { frame_sizes = [64, 9018] }
  continuous {}
}

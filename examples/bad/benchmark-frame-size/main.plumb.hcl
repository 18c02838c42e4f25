# 60 is a frame size without the FCS.
host "dut" {}

generator "dummy" "model" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "p0" {
  bridge = ovs_bridge.br0.name
  name   = "p0"
  type   = "internal"
}

benchmark "p2p" {
  generator = generator.dummy.model
  path      = [ovs_port.p0]
  traffic {
    frame_sizes = [60, 1514]
  }
  continuous {}
}

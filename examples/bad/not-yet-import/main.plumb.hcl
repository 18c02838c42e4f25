host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

import {
  to = ovs_bridge.br0
  id = "br0"
}

host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "plumb_data" "done" {
  depends_on = ["ovs_bridge.br0"]
}

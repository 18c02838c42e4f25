host "dut" {}

resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}

resource "ovs_port" "p" {
  for_each = { t0 = 1, t1 = 2 }
  bridge   = ovs_bridge.br0.name
  name     = each.key
  type     = "internal"
  ofport   = each.value
}

resource "ovs_flows" "br0" {
  bridge = ovs_bridge.br0.name
  flows = [
    "in_port=t0 actions=output:t2",
    "in_port=t1 actions=output:t0",
  ]
  depends_on = [ovs_port.p]
}

host "dut" {}

resource "ovs_flows" "br0" {
  bridge = "br0"
  generate {
    count   = 1000
    headers = "ipv4"
    src     = "10.0.0.0"
    vary    = ["source"]
    actions = "output:2"
  }
}

# Arguments are given with "=", as in HCL, not with ":" as in YAML.
host "dut" {}

resource "ovs_bridge" "br0" {
  name: "br0"
}

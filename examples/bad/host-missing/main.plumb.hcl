resource "ovs_bridge" "br0" {
  name = "br0"
}

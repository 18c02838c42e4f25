plumb {
  required_version = ">= 2.0, < 3.0"
}

resource "ovs_bridge" "br0" {
  something_new = true
}

# Each is reached through the other.
host "a" {
  ssh {
    address = "192.0.2.1"
    jump    = host.b
  }
}

host "b" {
  ssh {
    address = "192.0.2.2"
    jump    = host.a
  }
}

resource "ovs_bridge" "br0" {
  host = host.a
  name = "br0"
}

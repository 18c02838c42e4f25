plumb {
  required_providers {
    ovs = { version = ">= 9.0" }
  }
}

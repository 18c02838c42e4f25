plumb {
  required_providers {
    ovs = ">= 9.0"
  }
}

# A version is a string: there are no sources to name.
plumb {
  required_providers {
    ovs = { version = ">= 0.1" }
  }
}

plumb {
  required_version = "< 0.1"
}

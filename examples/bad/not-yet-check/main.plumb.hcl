check "enough_cores" {
  assert {
    condition     = true
    error_message = "More cores are needed."
  }
}

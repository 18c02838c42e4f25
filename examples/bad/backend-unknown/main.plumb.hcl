plumb {
  backend "s3" {
    bucket = "testbeds"
  }
}

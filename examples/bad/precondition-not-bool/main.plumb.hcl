variable "cores" {
  default = [1]
}

resource "plumb_data" "cores" {
  input = var.cores
  lifecycle {
    precondition {
      condition     = length(var.cores)
      error_message = "Two cores are needed."
    }
  }
}

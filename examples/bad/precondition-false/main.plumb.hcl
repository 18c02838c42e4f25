variable "cores" {
  default = [1]
}

resource "plumb_data" "cores" {
  input = var.cores
  lifecycle {
    precondition {
      condition     = length(var.cores) >= 2
      error_message = "Two cores are needed, and cores has ${length(var.cores)}."
    }
  }
}

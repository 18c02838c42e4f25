variable "ports" {
  default = 0
}

resource "plumb_data" "port" {
  count = var.ports - 1
}

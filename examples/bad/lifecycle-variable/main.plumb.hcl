# Needed before variables are known.
variable "keep" {
  default = true
}

host "dut" {}

resource "ovs_bridge" "br0" {
  name = "br0"
  lifecycle {
    prevent_destroy = var.keep
  }
}

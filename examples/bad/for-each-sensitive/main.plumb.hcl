variable "bridges" {
  type      = set(string)
  default   = ["br0"]
  sensitive = true
}

host "dut" {}

resource "ovs_bridge" "br" {
  for_each = var.bridges
  name     = each.key
}

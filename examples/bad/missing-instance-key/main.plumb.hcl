host "dut" {}

resource "ovs_bridge" "br" {
  count = 2
  name  = "br${count.index}"
}

output "first" {
  value = ovs_bridge.br.name
}

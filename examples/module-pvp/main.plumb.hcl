# The quickstart's testbed from the module modules/pvp, on a machine with enough cores to give everything its own.

host "dut" {}

resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 384 }
}

resource "ovs_switch" "dut" {
  dpdk {
    socket_mem   = [512]
    socket_limit = [512]
    lcores       = "0"
    pmd_cores    = "1"
    extra        = "--no-pci"
  }
}

module "pvp" {
  source = "../../modules/pvp"
  vnf    = { cores = "0,2", main_core = 0 }
  tester = { cpus = "3" } # one CPU sends and receives, in turns
}

output "bridge" {
  value = module.pvp.bridge
}

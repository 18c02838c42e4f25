# The host has no NIC at that address.
host "dut" {}

resource "nic_driver" "p0" {
  pci    = "01:00.0"
  driver = "vfio-pci"
}

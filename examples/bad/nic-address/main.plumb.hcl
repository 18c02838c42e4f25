# Not a PCI address.
host "dut" {}

resource "nic_driver" "p0" {
  pci    = "eth0; reboot"
  driver = "vfio-pci"
}

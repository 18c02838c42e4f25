host "dut" {}

resource "host_kernel_args" "dut" {
  args = ["iommu=pt"]
}

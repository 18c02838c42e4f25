host "dut" {}

resource "host_cpu_isolation" "dut" {
  cores = "1-3"
}

resource "host_kernel_args" "dut" {
  args = ["iommu=pt", "isolcpus=5"]
}

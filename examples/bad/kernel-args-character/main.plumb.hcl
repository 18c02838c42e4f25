host "dut" {}

resource "host_kernel_args" "dut" {
  args = ["memmap=4G$16G"]
}

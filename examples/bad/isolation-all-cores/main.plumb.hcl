host "dut" {}

resource "host_cpu_isolation" "dut" {
  cores = "0-7"
}

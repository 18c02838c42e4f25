host "dut" {}

resource "host_cpu_isolation" "dut" {
  cores = "6-9"
}

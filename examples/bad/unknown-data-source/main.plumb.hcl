host "dut" {}

data "host_fact" "dut" {}

host "dut" {}

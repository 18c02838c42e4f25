host "dut" {}

generator "testpdm" "tg" {}

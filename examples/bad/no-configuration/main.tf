# Files are *.plumb.hcl or *.plumb.json.
host "dut" {}

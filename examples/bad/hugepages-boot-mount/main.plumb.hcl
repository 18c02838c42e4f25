# Nothing of the host mounts pages of 1G, and what Plumb would mount now is gone after the reboot.
host "dut" {}

resource "host_hugepages" "dut" {
  size  = "1G"
  pages = { "0" = 4 }
  when  = "boot"
}

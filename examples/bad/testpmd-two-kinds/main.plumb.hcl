# A port is one thing.
host "dut" {}

resource "dpdk_testpmd" "vnf" {
  cores = "3,4"
  port {
    vhost_user = "/run/plumb/vhost/v0"
    vdev       = "net_null0"
  }
}

# Does every frame turn up somewhere? The testbed of examples/quickstart under half of what it carries without loss, for ten minutes on each path. Each lost frame has to
# be found in the ledger, with the hop that lost it and the cause that the hop names.
#
#   plumb apply                              build it, search the throughput, soak, write results/<run>/report.html
#   plumb apply -var duration=2h             a longer soak; an interrupted one goes on with plumb bench
#   plumb destroy

plumb {
  required_version = ">= 0.1"
}

variable "pmd_core" {
  type        = number
  default     = 0
  description = "Core that OVS's poll mode driver thread has for itself."
}

variable "tester_core" {
  type        = number
  default     = 1
  description = "Core that the traffic generator and the VNF share. On a machine with more cores give each its own."
}

variable "duration" {
  type        = string
  default     = "10m"
  description = "How long each path is soaked."
}

# The machine that everything runs on: a host without a connection block is this one.
host "dut" {}

# OVS-DPDK takes its packet buffers from hugepages, and so does testpmd.
resource "host_hugepages" "dut" {
  host  = host.dut
  size  = "2M"
  pages = { "0" = 384 } # by NUMA node: 512 MB for OVS, 128 MB for the VNF, and some to spare
}

resource "ovs_switch" "dut" {
  host = host.dut
  dpdk {
    socket_mem   = [512]
    socket_limit = [512] # without a limit OVS takes what is free for its packet buffers, 788 MB at MTU 1500
    lcores       = var.tester_core
    pmd_cores    = var.pmd_core
    extra        = "--no-pci" # no NIC is used: keep DPDK's hands off this machine's own
  }
}

resource "ovs_bridge" "br0" {
  host     = host.dut
  name     = "br0"
  datapath = "netdev"
}

# Two tester ports, t0 and t1, and two VNF ports, v0 and v1. OVS is the vhost-user client: either side may restart.
resource "ovs_port" "p" {
  for_each = { t0 = 1, t1 = 2, v0 = 3, v1 = 4 }
  host     = host.dut
  bridge   = ovs_bridge.br0.name
  name     = each.key
  type     = "dpdkvhostuserclient"
  ofport   = each.value
}

resource "ovs_flows" "br0" {
  host   = host.dut
  bridge = ovs_bridge.br0.name
  flows = [
    "in_port=t1 actions=output:t0", # P2P
    "in_port=t0 actions=output:v0", # PVP, into the VNF
    "in_port=v1 actions=output:t1", # PVP, out of the VNF
    "in_port=v0 actions=drop",
  ]
}

# The network function: testpmd hands what comes in on v0 to v1 and back. It owns the sockets and waits for OVS to connect.
resource "dpdk_testpmd" "vnf" {
  host        = host.dut
  cores       = "${var.pmd_core},${var.tester_core}"
  main_core   = var.pmd_core # the console, which idles; the other core forwards
  share_cores = true
  memory      = [128]
  port {
    vhost_user = ovs_port.p["v0"].vhost_server_path
    queue_size = 8192
  }
  port {
    vhost_user = ovs_port.p["v1"].vhost_server_path
    queue_size = 8192
  }
}

# The tester: Plumb's own load generator, in this process. It shares its core with the network function, so its thread sleeps when it has nothing to do,
# and runs at once when it has.
generator "loadgen" "tester" {
  host        = host.dut
  cpus        = var.tester_core
  share_cores = true
  realtime    = 1

  # A virtqueue is the switch's receive queue. On a machine whose cores belong to others too, threads stand still for milliseconds: a long queue bridges that, and
  # what waits there shows as latency.
  tx_queue_size = 8192
  port {
    vhost_user = ovs_port.p["t0"].vhost_server_path
  }
  port {
    vhost_user = ovs_port.p["t1"].vhost_server_path
  }
}

benchmark "p2p" {
  generator       = generator.loadgen.tester
  path            = [ovs_port.p["t1"], ovs_port.p["t0"]]
  warm_up         = "1s"
  settle          = "500ms"
  drain           = "1s"
  invalid_retries = 20 # the tester shares its core here, and is often late
  traffic {
    frame_sizes = [64]
    flows       = [1000]
    headers     = "udp"
  }
  soak {
    duration  = var.duration
    share     = 50
    explained = true
    search { # for the throughput
      trial      = "500ms"
      final      = "2s"
      resolution = 5
      retries    = 1
      min_load   = "10k"
    }
  }
  require {
    condition     = alltrue([for f in self.figures : f.median == 0 if f.name == "soak_unexplained"])
    error_message = "Frames were lost that no hop accounts for."
  }
}

benchmark "pvp" {
  generator       = generator.loadgen.tester
  path            = [ovs_port.p["t0"], ovs_port.p["v0"], dpdk_testpmd.vnf, ovs_port.p["v1"], ovs_port.p["t1"]]
  warm_up         = "1s"
  settle          = "500ms"
  drain           = "1s"
  invalid_retries = 20 # the tester shares its core here, and is often late
  traffic {
    frame_sizes = [64]
    flows       = [1000]
    headers     = "udp"
  }
  soak {
    duration  = var.duration
    share     = 50
    explained = true
    search { # for the throughput
      trial      = "500ms"
      final      = "2s"
      resolution = 5
      retries    = 1
      min_load   = "10k"
    }
  }
  require {
    condition     = alltrue([for f in self.figures : f.median == 0 if f.name == "soak_unexplained"])
    error_message = "Frames were lost that no hop accounts for."
  }
}

# A whole testbed on this machine: OVS-DPDK with a userspace bridge, two tester ports and one VNF on vhost-user.
#
#   tester ── t1 ─┐                         P2P:  t1 -> t0
#                 br0 ── v0 ── testpmd
#   tester ── t0 ─┘   └─ v1 ── (VNF)        PVP:  t0 -> v0 -> VNF -> v1 -> t1
#
# It needs two cores, 2 MB hugepages and no NIC, KVM or kernel module. Run it with
#
#   plumb apply       build it, run both benchmarks, write results/<run>/report.html
#   plumb destroy     take it all down and put the machine back as it was found

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

variable "frame_sizes" {
  type        = list(number)
  default     = [64, 1518]
  description = "Frame sizes in bytes, with the FCS."
}

variable "final_trial" {
  type        = string
  default     = "2s"
  description = "Length of the trial that a throughput has passed. RFC 2544 asks for 60s, and only such a result is called by its name."
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

# P2P: one pass through the switch.
benchmark "p2p" {
  generator = generator.loadgen.tester
  path      = [ovs_port.p["t1"], ovs_port.p["t0"]]
  warm_up   = "1s"
  repeat    = 3
  traffic {
    frame_sizes = var.frame_sizes
    headers     = "udp"
  }
  continuous {
    duration = "3s"
    load     = "max"
  }
  require {
    condition     = alltrue([for s in self.summary : s.rx_fps_median > 0])
    error_message = "Nothing came through the switch."
  }
}

# PVP: through the switch, the network function, and the switch again.
benchmark "pvp" {
  generator = generator.loadgen.tester
  path      = [ovs_port.p["t0"], ovs_port.p["v0"], dpdk_testpmd.vnf, ovs_port.p["v1"], ovs_port.p["t1"]]
  warm_up   = "1s"
  repeat    = 3
  traffic {
    frame_sizes = var.frame_sizes
    headers     = "udp"
  }
  continuous {
    duration = "3s"
    load     = "max"
  }
  require {
    condition     = alltrue([for s in self.summary : s.rx_fps_median > 0])
    error_message = "Nothing came through the network function."
  }
}

# What the two paths carry without loss (NDR) and with half a percent (PDR), in one search. Trials are short here, and a search that does not get to its end in time
# says so; leave the arguments of ndr_pdr out for FD.io CSIT's.
benchmark "p2p_ndr" {
  generator       = generator.loadgen.tester
  path            = [ovs_port.p["t1"], ovs_port.p["t0"]]
  invalid_retries = 20 # the tester shares its core here, and is often late
  traffic {
    frame_sizes = var.frame_sizes
    headers     = "udp"
  }
  ndr_pdr {
    trial      = "500ms"
    sum        = "3s"
    width      = 2
    time_limit = "3m"
    min_load   = "10k"
  }
}

benchmark "pvp_ndr" {
  generator       = generator.loadgen.tester
  path            = [ovs_port.p["t0"], ovs_port.p["v0"], dpdk_testpmd.vnf, ovs_port.p["v1"], ovs_port.p["t1"]]
  invalid_retries = 20 # the tester shares its core here, and is often late
  traffic {
    frame_sizes = var.frame_sizes
    headers     = "udp"
  }
  ndr_pdr {
    trial      = "500ms"
    sum        = "3s"
    width      = 5
    time_limit = "3m"
    min_load   = "10k"
  }
}

# Throughput by bisection as in RFC 2544, but for short trials and waits, which the report names. With -var final_trial=60s, and without warm_up, settle, drain, rest,
# trial and resolution, it is the whole test.
benchmark "p2p_throughput" {
  generator       = generator.loadgen.tester
  path            = [ovs_port.p["t1"], ovs_port.p["t0"]]
  warm_up         = "500ms"
  settle          = "200ms"
  drain           = "500ms"
  rest            = "0s"
  invalid_retries = 20 # the tester shares its core here, and is often late
  traffic {
    frame_sizes = var.frame_sizes
    headers     = "udp"
  }
  throughput {
    trial      = "500ms"
    final      = var.final_trial
    resolution = 2
    retries    = 1
    min_load   = "10k"
  }
}

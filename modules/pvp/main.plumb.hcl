# PVP on vhost-user: a userspace bridge with two tester ports, a network function between two more, and both benchmarks.
#
#   tester ── t1 ─┐                         P2P:  t1 -> t0
#                 bridge ── v0 ── testpmd
#   tester ── t0 ─┘     └── v1 ── (VNF)     PVP:  t0 -> v0 -> VNF -> v1 -> t1
#
# The caller has the host, its hugepages and Open vSwitch with DPDK.

variable "bridge" {
  type        = string
  default     = "br-pvp"
  description = "Name of the bridge; it also begins the names of its ports, so at most 12 characters."
  validation {
    condition     = length(var.bridge) <= 12
    error_message = "The bridge's name is ${length(var.bridge)} characters long; its ports' names, two longer with a dash, must fit 15 (IFNAMSIZ)."
  }
}

variable "vnf" {
  type = object({
    cores       = string
    main_core   = number
    memory      = optional(list(number), [128])
    share_cores = optional(bool, false)
  })
  description = "Where the network function runs: its cores as a list, the one of them that idles, MB of hugepages by NUMA node."
}

variable "tester" {
  type = object({
    cpus        = string
    share_cores = optional(bool, false)
    realtime    = optional(number, 0)
  })
  description = "Where the traffic generator runs: its CPUs as a list, one thread each, whether others spin there too, and the threads' real-time priority."
}

variable "frame_sizes" {
  type        = list(number)
  default     = [64, 128, 256, 512, 1024, 1280, 1518]
  description = "Frame sizes in bytes, with the FCS (RFC 2544 section 9.1)."
}

variable "duration" {
  type        = string
  default     = "10s"
  description = "Length of a trial."
}

variable "repeat" {
  type        = number
  default     = 3
  description = "Trials of each frame size."
}

resource "ovs_bridge" "this" {
  name     = var.bridge
  datapath = "netdev"
}

resource "ovs_port" "p" {
  for_each = { t0 = 1, t1 = 2, v0 = 3, v1 = 4 }
  bridge   = ovs_bridge.this.name
  name     = "${var.bridge}-${each.key}"
  type     = "dpdkvhostuserclient"
  ofport   = each.value
}

resource "ovs_flows" "this" {
  bridge = ovs_bridge.this.name
  flows = [
    "in_port=2 actions=output:1", # P2P
    "in_port=1 actions=output:3", # PVP, into the VNF
    "in_port=4 actions=output:2", # PVP, out of the VNF
    "in_port=3 actions=drop",
  ]
}

resource "dpdk_testpmd" "vnf" {
  cores       = var.vnf.cores
  main_core   = var.vnf.main_core
  memory      = var.vnf.memory
  share_cores = var.vnf.share_cores
  dynamic "port" {
    for_each = ["v0", "v1"]
    content {
      vhost_user = ovs_port.p[port.value].vhost_server_path
    }
  }
}

generator "loadgen" "tester" {
  cpus        = var.tester.cpus
  share_cores = var.tester.share_cores
  realtime    = var.tester.realtime
  port {
    vhost_user = ovs_port.p["t0"].vhost_server_path
  }
  port {
    vhost_user = ovs_port.p["t1"].vhost_server_path
  }
}

benchmark "p2p" {
  generator = generator.loadgen.tester
  path      = [ovs_port.p["t1"], ovs_port.p["t0"]]
  warm_up   = "1s"
  repeat    = var.repeat
  traffic {
    frame_sizes = var.frame_sizes
  }
  continuous {
    duration = var.duration
  }
}

benchmark "pvp" {
  generator = generator.loadgen.tester
  path      = [ovs_port.p["t0"], ovs_port.p["v0"], dpdk_testpmd.vnf, ovs_port.p["v1"], ovs_port.p["t1"]]
  warm_up   = "1s"
  repeat    = var.repeat
  traffic {
    frame_sizes = var.frame_sizes
  }
  continuous {
    duration = var.duration
  }
}

output "bridge" {
  value       = ovs_bridge.this.name
  description = "Name of the bridge."
}

# Every benchmark method, on a model of a switch instead of a switch: nothing is built or sent, and it takes no time. Try a method here before it takes an
# hour of a testbed, or look at what its report says. The figures say nothing about any real switch.
#
#   plumb apply

variable "capacity" {
  type        = number
  default     = 1.2e6
  description = "Frames per second that the model forwards."
}

generator "dummy" "model" {
  capacity      = var.capacity
  byte_rate     = 600e6 # so that large frames have a rate of their own
  tester_rate   = 5e6
  noise         = 0.001
  buffer        = 20000
  recovery_time = 35
  reset_time    = 250
  latency       = 8000
}

locals {
  sizes = [64, 1518]
}

# One load for each frame size: what comes back.
benchmark "continuous" {
  generator = generator.dummy.model
  repeat    = 5
  traffic {
    frame_sizes = local.sizes
  }
  continuous {
    duration = "10s"
    load     = "max"
  }
}

# RFC 2544 section 26.1. A plain block is the whole test: trials of 60 s without loss, with all waits.
benchmark "throughput" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = local.sizes
  }
  throughput {}
  require {
    condition     = self.found["throughput/64/1"].median > 0.9 * var.capacity
    error_message = "The throughput is more than a tenth below what the model forwards."
  }
}

# A quick look for the same: short trials, few waits. The report says how it differs.
benchmark "quick_throughput" {
  generator = generator.dummy.model
  rest      = "0s"
  settle    = "100ms"
  drain     = "500ms"
  warm_up   = "500ms"
  traffic {
    frame_sizes = local.sizes
  }
  throughput {
    trial      = "1s"
    final      = "5s"
    resolution = 1 # percent
    retries    = 1 # a lossy trial is repeated once: loss verification
  }
}

# NDR and PDR in one search (MLRsearch), three times for the spread.
benchmark "ndr_pdr" {
  generator = generator.dummy.model
  repeat    = 3
  traffic {
    frame_sizes = local.sizes
    flows       = [1, 10000]
    headers     = "udp"
  }
  ndr_pdr {}
}

# Goals of one's own, in one search.
benchmark "goals" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = [64]
  }
  ndr_pdr {
    goal "no loss" {}
    goal "one in a thousand" {
      loss = 0.1
    }
    goal "RFC 2544" {
      trial  = "60s"
      sum    = "60s"
      exceed = 0
    }
  }
}

# RFC 2544 section 26.3: loss over offered load.
benchmark "loss_rate" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = [64]
  }
  loss_rate {
    max_load = "2M"
  }
}

# RFC 2544 section 26.2 at the throughput, with the percentiles of RFC 8219.
benchmark "latency" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = local.sizes
  }
  latency {}
}

# RFC 9004: the longest burst without loss, and the buffer time that it shows.
benchmark "back_to_back" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = [64]
  }
  back_to_back {}
}

# RFC 2544 section 21: bursts of 16 to 1024 frames.
benchmark "burst" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = [64]
  }
  burst {
    max_load = "5M"
  }
}

# RFC 2544 section 26.5: how long frames are lost after an overload.
benchmark "recovery" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = [64]
  }
  recovery {}
}

# RFC 2544 section 26.6. On a testbed, target says what is restarted: target = ovs_switch.dut.
benchmark "reset" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = [64]
  }
  reset {
    kind     = "restart"
    max_time = "1s" # longer is a FAIL
  }
}

# Half of the throughput for ten minutes.
benchmark "soak" {
  generator = generator.dummy.model
  traffic {
    frame_sizes = [64]
  }
  soak {
    share    = 50
    max_loss = 0
  }
}

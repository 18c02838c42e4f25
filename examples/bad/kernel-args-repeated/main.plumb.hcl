# - and _ are the same in the names of arguments.
host "dut" {}

resource "host_kernel_args" "dut" {
  args = ["rcu-nocbs=1-3", "rcu_nocbs=1-2"]
}

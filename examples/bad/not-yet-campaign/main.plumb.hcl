campaign "kernel_vs_dpdk" {
  vary = { datapath = ["kernel", "dpdk"] }
}

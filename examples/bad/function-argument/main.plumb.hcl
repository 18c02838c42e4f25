locals {
  cores = cpulist("1-x")
}

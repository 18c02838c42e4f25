locals {
  cores = [1, 2]
  text  = "cores ${local.cores}"
}

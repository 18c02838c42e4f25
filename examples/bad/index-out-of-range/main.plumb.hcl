locals {
  cores = [1, 2]
  third = local.cores[2]
}

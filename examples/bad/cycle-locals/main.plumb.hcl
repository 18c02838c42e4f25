locals {
  cores = local.count
  count = length(local.cores)
}

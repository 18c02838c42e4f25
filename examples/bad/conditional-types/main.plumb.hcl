locals {
  cores = true ? [1, 2] : "none"
}

variable "pmd_cores" {
  type = string
}

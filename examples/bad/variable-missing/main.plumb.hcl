variable "pmd_cores" {
  type        = string
  description = "Cores that poll, as a list."
}

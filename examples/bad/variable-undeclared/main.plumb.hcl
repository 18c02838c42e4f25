variable "pmd_cores" {
  default = "2"
}

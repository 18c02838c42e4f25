# Types are keywords, not strings.
variable "cores" {
  type = "list(number)"
}

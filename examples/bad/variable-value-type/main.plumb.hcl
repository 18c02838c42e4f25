variable "cores" {
  type = list(number)
}

variable "frame_sizes" {
  type    = list(number)
  default = "64,128"
}

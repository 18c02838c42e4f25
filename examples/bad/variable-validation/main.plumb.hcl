variable "datapath" {
  type = string
  validation {
    condition     = contains(["netdev", "system"], var.datapath)
    error_message = "datapath must be netdev or system."
  }
}

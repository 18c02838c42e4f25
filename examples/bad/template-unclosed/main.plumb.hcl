locals {
  name = "br${count"
}

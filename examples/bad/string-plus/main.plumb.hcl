locals {
  name = "br" + "0"
}

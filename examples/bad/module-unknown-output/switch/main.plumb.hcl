output "bridge" {
  value = "br0"
}

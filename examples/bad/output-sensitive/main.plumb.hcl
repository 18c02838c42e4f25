variable "password" {
  type      = string
  default   = "x"
  sensitive = true
}

output "login" {
  value = "root:${var.password}"
}

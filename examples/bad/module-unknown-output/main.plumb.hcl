module "switch" {
  source = "./switch"
}

output "bridge" {
  value = module.switch.brigde
}

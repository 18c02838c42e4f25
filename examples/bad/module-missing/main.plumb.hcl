module "pvp" {
  source = "./modules/pvp"
}

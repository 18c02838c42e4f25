module "switch" {
  source = "./switch"
}

module "again" {
  source = "../a"
}

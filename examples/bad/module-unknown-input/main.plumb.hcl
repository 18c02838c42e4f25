module "switch" {
  source    = "./switch"
  pmd_cores = "1"
  pmd_mask  = "0x2"
}

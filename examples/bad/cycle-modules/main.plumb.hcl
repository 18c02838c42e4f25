module "left" {
  source = "./echo"
  in     = module.right.out
}

module "right" {
  source = "./echo"
  in     = module.left.out
}

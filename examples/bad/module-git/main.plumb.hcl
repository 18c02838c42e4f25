module "pvp" {
  source = "git::https://git.example.com/testbeds.git//pvp?ref=v1"
}

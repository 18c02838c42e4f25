locals {
  mask = cpumsk([1, 2])
}

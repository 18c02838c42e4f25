# The greatest load of a search is a number: "max" is what it finds out by itself.
generator "dummy" "model" {}

benchmark "search" {
  generator = generator.dummy.model
  throughput {
    max_load = "max"
    loss     = 100
  }
}

resource "plumb_data" "a" {
  input = plumb_data.a.output
}

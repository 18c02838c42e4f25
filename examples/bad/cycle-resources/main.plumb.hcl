resource "plumb_data" "a" {
  input = plumb_data.b.output
}

resource "plumb_data" "b" {
  input = plumb_data.c.output
}

resource "plumb_data" "c" {
  input = plumb_data.a.output
}

package hostkit

import (
	"net"
	"testing"
)

func TestRounds(t *testing.T) {
	var r rounds
	for range 3 {
		r.begin()()
	}
	if r.longest() != 3 {
		t.Errorf("three after one another: %d", r.longest())
	}
	ends := []func(){r.begin(), r.begin(), r.begin()}
	for _, end := range ends {
		end()
	}
	if r.longest() != 4 {
		t.Errorf("and three side by side: %d", r.longest())
	}
}

// A question and its answer on an open connection are a round trip, however many writes and reads they take.
func TestTalkCountsRounds(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		b := make([]byte, 2)
		for {
			if _, err := far.Read(b[:1]); err != nil {
				return
			}
			if _, err := far.Read(b[1:]); err != nil {
				return
			}
			if _, err := far.Write(b); err != nil {
				return
			}
		}
	}()
	var r rounds
	c := &talk{Conn: near, rounds: &r}
	for range 3 {
		for _, s := range []string{"a", "b"} {
			if _, err := c.Write([]byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Read(make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
	}
	if r.longest() != 3 {
		t.Errorf("%d rounds", r.longest())
	}
}

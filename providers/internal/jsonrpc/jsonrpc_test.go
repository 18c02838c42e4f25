package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"plumb/providers/internal/jsonrpc"
)

func TestDecoder(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limit    int
		want     []string
		err      string
	}{
		{"two without a gap", `{"a":1}{"b":[2,{"c":3}]}`, 100, []string{`{"a":1}`, `{"b":[2,{"c":3}]}`}, "EOF"},
		{"white space between", " \n{}\r\n\t{}", 100, []string{`{}`, `{}`}, "EOF"},
		{"braces in strings", `{"a":"}\"]\\"}{}`, 100, []string{`{"a":"}\"]\\"}`, `{}`}, "EOF"},
		{"cut", `{"a":`, 100, nil, "unexpected EOF"},
		{"not an object", `[1]`, 100, nil, "starts with"},
		{"wrong pair", `{"a":1]`, 100, nil, "not valid"},
		{"just the limit", `{"a":1}`, 7, []string{`{"a":1}`}, "EOF"},
		{"over the limit", `{"a":12}`, 7, nil, "larger than the limit"},
		{"deep", `{"a":` + strings.Repeat("[", 2000), 10000, nil, "nested"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := jsonrpc.NewDecoder(iotest.OneByteReader(strings.NewReader(c.in)), c.limit)
			var got []string
			for {
				m, err := d.Next()
				if err != nil {
					if !strings.Contains(err.Error(), c.err) {
						t.Fatalf("error %v, want %s", err, c.err)
					}
					break
				}
				got = append(got, string(m))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzDecoder: whatever comes, a message is a valid object within the limit, and splitting is the same as what encoding/json does.
func FuzzDecoder(f *testing.F) {
	for _, s := range []string{`{"a":1}{"b":"}"}`, `{"id":null,"method":"update","params":[null,{}]}`, `{`, `[]`, `{"\u0000":[[]]} {}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d := jsonrpc.NewDecoder(bytes.NewReader(in), 256)
		std := json.NewDecoder(bytes.NewReader(in))
		for {
			m, err := d.Next()
			if err != nil {
				return
			}
			if len(m) > 256 || m[0] != '{' || !json.Valid(m) {
				t.Fatalf("message %q", m)
			}
			var want json.RawMessage
			if err := std.Decode(&want); err != nil || !bytes.Equal(m, want) {
				t.Fatalf("message %q, encoding/json says %q, %v", m, want, err)
			}
		}
	})
}

// peer is the other end of a connection, driven by hand.
type peer struct {
	t   *testing.T
	c   net.Conn
	dec *json.Decoder
}

func pair(t *testing.T, notify jsonrpc.Notify) (*jsonrpc.Conn, *peer) {
	a, b := net.Pipe()
	c := jsonrpc.New(a, notify)
	t.Cleanup(func() { _ = c.Close(); _ = b.Close() })
	return c, &peer{t, b, json.NewDecoder(b)}
}

func (p *peer) read() map[string]any {
	var m map[string]any
	if err := p.dec.Decode(&m); err != nil {
		p.t.Error(err)
	}
	return m
}

func (p *peer) write(format string, args ...any) {
	if _, err := fmt.Fprintf(p.c, format, args...); err != nil {
		p.t.Error(err)
	}
}

func TestCall(t *testing.T) {
	c, p := pair(t, nil)
	go func() {
		first, second := p.read(), map[string]any(nil)
		p.write(`{"method":"echo","params":["x"],"id":"e"}`)
		if got := fmt.Sprint(p.read()); got != "map[error:<nil> id:e result:[x]]" {
			t.Errorf("echo answered with %s", got)
		}
		p.write(`{"method":"steal","params":[],"id":7}`)
		if got := fmt.Sprint(p.read()["error"]); got != "unknown method" {
			t.Errorf("steal answered with %s", got)
		}
		p.write(`{"id":999,"result":1,"error":null}{"id":"x","result":1,"error":null}`)
		p.write(`{"id":%v,"result":["ok"],"error":null}`, first["id"])
		second = p.read()
		p.write(`{"id":%v,"result":null,"error":"no such thing"}`, second["id"])
	}()
	res, err := c.Call(t.Context(), "m", 1, "two")
	if err != nil || string(res) != `["ok"]` {
		t.Fatalf("%s, %v", res, err)
	}
	_, err = c.Call(t.Context(), "m2")
	var fault *jsonrpc.Error
	if !errors.As(err, &fault) || err.Error() != "m2: no such thing" {
		t.Fatal(err)
	}
}

func TestCancelKeepsTheConnection(t *testing.T) {
	c, p := pair(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		first := p.read()
		cancel()
		second := p.read()
		p.write(`{"id":%v,"result":"late","error":null}`, first["id"])
		p.write(`{"id":%v,"result":"second","error":null}`, second["id"])
	}()
	if _, err := c.Call(ctx, "slow"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if res, err := c.Call(t.Context(), "fast"); err != nil || string(res) != `"second"` {
		t.Fatalf("%s, %v", res, err)
	}
}

func TestCancelWhileWriting(t *testing.T) {
	c, p := pair(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b := make([]byte, 3)
		_, _ = io.ReadFull(p.c, b) // and no more: the write is stuck
		cancel()
	}()
	if _, err := c.Call(ctx, "stuck"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := c.Call(ctx, "cancelled before"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // does not hang
		t.Fatal(err)
	}
	<-c.Done()
}

func TestServe(t *testing.T) {
	client, server := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		jsonrpc.Serve(server, func(p *jsonrpc.Peer, method string, params json.RawMessage, reply func(result, fault any)) {
			switch method {
			case "fail":
				reply(nil, "refused")
			case "exit":
				reply("bye", nil)
				p.Close()
			default:
				p.Notify("seen", method)
				reply(params, nil)
			}
		})
	}()
	seen := make(chan string, 1)
	c := jsonrpc.New(client, func(_ string, params json.RawMessage) { seen <- string(params) })
	if res, err := c.Call(t.Context(), "m", "<a&b>"); err != nil || string(res) != `["<a&b>"]` || <-seen != `["m"]` {
		t.Fatal(string(res), err)
	}
	if _, err := c.Call(t.Context(), "fail"); err == nil || err.Error() != "fail: refused" {
		t.Fatal(err)
	}
	if res, err := c.Call(t.Context(), "exit"); err != nil || string(res) != `"bye"` {
		t.Fatal(string(res), err)
	}
	<-served
	_ = c.Close()
}

func TestEnds(t *testing.T) {
	t.Run("other side closes", func(t *testing.T) {
		c, p := pair(t, nil)
		go func() { p.read(); _ = p.c.Close() }()
		if _, err := c.Call(t.Context(), "m"); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		c, p := pair(t, nil)
		go func() { p.read(); p.write("HTTP/1.1 400") }()
		if _, err := c.Call(t.Context(), "m"); err == nil || !strings.Contains(err.Error(), "starts with") {
			t.Fatal(err)
		}
	})
	t.Run("we close", func(t *testing.T) {
		c, p := pair(t, nil)
		go func() { p.read(); _ = c.Close() }()
		if _, err := c.Call(t.Context(), "m"); !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
	})
}

func TestNotify(t *testing.T) {
	got := make(chan string, 1)
	_, p := pair(t, func(method string, params json.RawMessage) { got <- method + string(params) })
	p.write(`{"method":"update","params":[1],"id":null}`)
	if s := <-got; s != "update[1]" {
		t.Fatal(s)
	}
}

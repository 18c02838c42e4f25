package unixctl_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/providers/internal/jsonrpc"
	"plumb/providers/internal/unixctl"
)

func TestRun(t *testing.T) {
	client, server := net.Pipe()
	go jsonrpc.Serve(server, func(p *jsonrpc.Peer, method string, params json.RawMessage, reply func(result, fault any)) {
		switch method {
		case "exit":
			p.Close()
		case "number":
			reply(5, nil)
		case "args":
			reply(string(params), nil)
		default:
			reply(nil, `"`+method+`" is not a valid command (use "list-commands" to see a list of valid commands)`)
		}
	})
	c := unixctl.New(client)
	defer c.Close()
	if out, err := c.Run(t.Context(), "args", "a b", "--c"); err != nil || out != `["a b","--c"]` {
		t.Fatal(out, err)
	}
	if out, err := c.Run(t.Context(), "args"); err != nil || out != `[]` {
		t.Fatal(out, err)
	}
	var refused *unixctl.Error
	if _, err := c.Run(t.Context(), "nonsense"); !errors.As(err, &refused) || refused.Command != "nonsense" || !strings.Contains(err.Error(), "not a valid command") {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), "number"); err == nil || !strings.Contains(err.Error(), "instead of text") {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), "exit"); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

// TestRunReal speaks to a private ovsdb-server.
func TestRunReal(t *testing.T) {
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set")
	}
	dir, err := os.MkdirTemp("", "plumb-ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if out, err := exec.Command("ovsdb-tool", "create", dir+"/db", "/usr/share/openvswitch/vswitch.ovsschema").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctl := filepath.Join(dir, "ctl")
	server := exec.Command("ovsdb-server", dir+"/db", "--unixctl="+ctl)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() { _ = server.Process.Kill() })
	var conn net.Conn
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); conn == nil; {
		conn, err = net.Dial("unix", ctl)
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(err)
		}
	}
	c := unixctl.New(conn)
	defer c.Close()
	if out, err := c.Run(t.Context(), "ovsdb-server/list-dbs"); err != nil || !strings.Contains(out, "Open_vSwitch\n") {
		t.Fatal(out, err)
	}
	var refused *unixctl.Error
	if _, err := c.Run(t.Context(), "nonsense"); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), "exit"); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/fake"
	"plumb/providers/host"
)

// served is a fake host behind an SSH server.
func served(t testing.TB, o fake.SSHOptions) *fake.SSHServer {
	t.Helper()
	machine, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := fake.ServeSSH(t.TempDir(), machine, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); _ = machine.Close() })
	return s
}

// block is a host block with one connection block, of which the named attributes are set.
func block(t testing.TB, way string, set map[string]cty.Value) cty.Value {
	t.Helper()
	all := host.Schema().ImpliedType()
	fill := func(ty cty.Type, set map[string]cty.Value) cty.Value {
		out := map[string]cty.Value{}
		for name, a := range ty.AttributeTypes() {
			out[name] = cty.NullVal(a)
			if v, ok := set[name]; ok {
				out[name] = v
			}
		}
		return cty.ObjectVal(out)
	}
	inner := fill(all.AttributeType(way), set)
	return fill(all, map[string]cty.Value{way: inner})
}

func sshBlock(t testing.TB, s *fake.SSHServer, more map[string]cty.Value) cty.Value {
	set := map[string]cty.Value{
		"address": cty.StringVal("127.0.0.1"), "user": cty.StringVal(s.User), "port": cty.NumberIntVal(int64(s.Port)), "key": cty.StringVal(s.Key),
		"known_hosts": cty.ListVal([]cty.Value{cty.StringVal(s.KnownHosts)}), "config": cty.StringVal("none"),
	}
	for k, v := range more {
		set[k] = v
	}
	return block(t, "ssh", set)
}

func none(context.Context, string) (providers.Host, error) { return nil, errors.New("no such host") }

func open(t testing.TB, name string, config cty.Value, others providers.Hosts) (providers.Host, error) {
	t.Helper()
	h, err := host.Opener(host.Connected)(t.Context(), name, config, others)
	if err == nil {
		t.Cleanup(func() { _ = h.Close() })
	}
	return h, err
}

func TestOpenBySSHThroughAHost(t *testing.T) {
	// The gate is this machine's shell, so that what it dials is real.
	gateServer, err := fake.ServeSSH(t.TempDir(), nil, fake.SSHOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gateServer.Close)
	inner := served(t, fake.SSHOptions{})
	gate, err := open(t, "gate", sshBlock(t, gateServer, nil), none)
	if err != nil {
		t.Fatal(err)
	}
	h, err := open(t, "dut", sshBlock(t, inner, map[string]cty.Value{"jump": cty.StringVal("gate")}), func(_ context.Context, name string) (providers.Host, error) {
		if name != "gate" {
			return nil, fmt.Errorf("%s is not the gate", name)
		}
		return gate, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := h.Facts(t.Context()); err != nil || f.Hostname == "" {
		t.Errorf("%v, %v", f, err)
	}
	if n := h.Reads().Connections; n != 1 || inner.Connections() != 1 || gateServer.Connections() != 1 {
		t.Errorf("%d connections counted, %d made, %d to the gate", n, inner.Connections(), gateServer.Connections())
	}
	if m, ok := h.Conn().(providers.Managed); !ok || m.ManagementAddress() != "127.0.0.1" {
		t.Error("nobody knows where the connection comes in")
	}
	if r := gate.Reads(); r.Dials != 0 || r.Rounds != 0 {
		t.Errorf("what goes through the gate is counted as the gate's: %+v", r)
	}
	gateServer.Close()
	_, err = h.Conn().Run(t.Context(), providers.Cmd{Args: []string{"true"}})
	if !errors.Is(err, providers.ErrUnreachable) {
		t.Error(err)
	}
}

func TestOpenRefusals(t *testing.T) {
	s := served(t, fake.SSHOptions{Password: "swordfish"})
	secret := map[string]cty.Value{"password": cty.StringVal("hunter2"), "passphrase": cty.StringVal("hunter3"), "key": cty.StringVal(s.Key + ".none")}
	both := func() cty.Value {
		v := sshBlock(t, s, nil).AsValueMap()
		v["netns"] = block(t, "netns", map[string]cty.Value{"name": cty.StringVal("vnf")}).GetAttr("netns")
		return cty.ObjectVal(v)
	}
	for name, tc := range map[string]struct {
		config      cty.Value
		unreachable bool
		want        string
	}{
		"wrong password": {sshBlock(t, s, secret), true, "log in as root: refused"},
		"wrong user":     {sshBlock(t, s, map[string]cty.Value{"user": cty.StringVal("nobody")}), true, "log in as nobody: refused"},
		"unknown key":    {sshBlock(t, s, map[string]cty.Value{"known_hosts": cty.ListVal([]cty.Value{cty.StringVal("/nonexistent")})}), true, "add this line to /nonexistent:"},
		"nobody there":   {sshBlock(t, s, map[string]cty.Value{"port": cty.NumberIntVal(1)}), true, "connect to 127.0.0.1:1"},
		"no such jump":   {sshBlock(t, s, map[string]cty.Value{"jump": cty.StringVal("gate")}), false, "host dut is reached through host gate: no such host"},
		"container":      {block(t, "container", map[string]cty.Value{"name": cty.StringVal("c")}), false, "container is not supported by this version"},
		"two ways":       {both(), false, "it has the blocks ssh and netns: a host is reached in one way"},
	} {
		_, err := open(t, "dut", tc.config, none)
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, providers.ErrUnreachable) != tc.unreachable {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "hunter") {
			t.Errorf("%s: the error tells a secret: %v", name, err)
		}
	}
}

func TestSecretsOfHostsAreSensitive(t *testing.T) {
	for name, a := range host.Schema().Blocks["ssh"].Attributes {
		if want := name == "password" || name == "passphrase"; a.Sensitive != want {
			t.Errorf("ssh.%s: sensitive %v", name, a.Sensitive)
		}
	}
}

// Fifty machines in one process.
func BenchmarkFiftyHostsBySSH(b *testing.B) {
	var blocks []cty.Value
	for range 50 {
		blocks = append(blocks, sshBlock(b, served(b, fake.SSHOptions{}), nil))
	}
	for b.Loop() {
		var wait sync.WaitGroup
		for i, c := range blocks {
			wait.Go(func() {
				h, err := host.Opener(host.Connected)(b.Context(), fmt.Sprintf("dut%d", i), c, none)
				if err != nil {
					b.Error(err)
					return
				}
				if _, err := h.Facts(b.Context()); err != nil {
					b.Error(err)
				}
				_ = h.Close()
			})
		}
		wait.Wait()
	}
}

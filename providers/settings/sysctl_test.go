package settings

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func TestKeys(t *testing.T) {
	for key, want := range map[string]string{
		"net.core.rmem_max":                    "net/core/rmem_max",
		"net/core/rmem_max":                    "net/core/rmem_max",
		"net.ipv4.conf.eth0/1.forwarding":      "net/ipv4/conf/eth0.1/forwarding",
		"net/ipv4/conf/eth0.1/forwarding":      "net/ipv4/conf/eth0.1/forwarding",
		"vm.swappiness":                        "vm/swappiness",
		"swappiness":                           "",
		"":                                     "",
		"../etc/passwd":                        "",
		"net/../../etc/passwd":                 "",
		"net.core.*":                           "",
		"/net/core/rmem_max":                   "",
		"net.core.rmem_max\n":                  "",
		"net.core.$(id)":                       "",
		"net.core.rmem max":                    "",
		"net.core.\x00":                        "",
		"-net.core.x":                          "-net/core/x", // a path below /proc/sys, never an option
		"net.ipv4.neigh.plt-set/7.gc_interval": "net/ipv4/neigh/plt-set.7/gc_interval",
	} {
		got, err := keyPath(key)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", key, got, err, want)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("net.ipv4.conf.eth0/1.forwarding")
	f.Fuzz(func(t *testing.T, key string) {
		p, err := keyPath(key)
		if err != nil {
			return
		}
		if again, err := keyPath(p); err != nil || again != p {
			t.Errorf("%q is %q, which is %q, %v", key, p, again, err)
		}
	})
}

func sysctlCase(open func(*testing.T) providers.Host, key, file string) conformance.Case {
	return conformance.Case{
		Type: Sysctl{}, Open: open,
		Config: attrs{"key": str(key), "value": str("4096  90000 6291456"), "persistent": cty.True},
		Update: attrs{"key": str(key), "value": str("4096 90001 6291456")},
		Drift: map[string]func(*testing.T, providers.Host){
			"changed": func(t *testing.T, h providers.Host) { put(t, h, file, "4096 80000 6291456") },
		},
	}
}

func TestSysctl(t *testing.T) {
	w := newWorld(t)
	c := sysctlCase(w.open, "net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem")
	c.Drift["forgotten"] = func(t *testing.T, h providers.Host) {
		p, err := newParameter(conformance.Desired(&Sysctl{}.Schema().Block, c.Config), testMark(Sysctl{}))
		if err != nil {
			t.Fatal(err)
		}
		do(t, h, "rm", "-f", "--", p.dropin)
	}
	c.Snapshot = w.snapshot
	conformance.Run(t, c)
}

func TestSysctlRefusals(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	wantProblem(t, planOf(t, Sysctl{}, h, attrs{"key": str("net.core.no_such"), "value": str("1")}), "/proc/sys/net/core/no_such", "host_module")
	_, err := create(t, Sysctl{}, h, attrs{"key": str("kernel.osrelease"), "value": str("7")})
	wantError(t, err, "kernel/osrelease", `"6.1.0-13-amd64"`, "permission denied")
	_, err = create(t, Sysctl{}, h, attrs{"key": str("vm.swappiness"), "value": str("much")})
	wantError(t, err, `stays "60"`, "invalid argument")
}

// A parameter of an interface that went away in between is not missed.
func TestSysctlOfAnInterfaceThatHasGone(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	req, err := create(t, Sysctl{}, h, attrs{"key": str("net/ipv4/conf/eth0.1/forwarding"), "value": str("1"), "persistent": cty.True})
	if err != nil {
		t.Fatal(err)
	}
	do(t, h, "rm", "-rf", "--", "/proc/sys/net/ipv4/conf/eth0.1")
	req.Prior, req.Planned = req.Planned, cty.NullVal(req.Planned.Type())
	if _, err := (Sysctl{}).Apply(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// On a link of the test's own.
func TestRealSysctl(t *testing.T) {
	real(t)
	h := local(t)
	defer h.Close()
	do(t, h, "ip", "link", "add", "plt-set0.7", "type", "veth", "peer", "name", "plt-set1")
	defer do(t, h, "ip", "link", "del", "plt-set0.7")
	const file = "/proc/sys/net/ipv4/neigh/plt-set0.7/gc_stale_time"
	conformance.Run(t, conformance.Case{
		Type: Sysctl{}, Open: local, Snapshot: files(file, "/etc/sysctl.d/*"),
		Config: attrs{"key": str("net.ipv4.neigh.plt-set0/7.gc_stale_time"), "value": str("77"), "persistent": cty.True},
		Update: attrs{"key": str("net.ipv4.neigh.plt-set0/7.gc_stale_time"), "value": str("78")},
		Drift: map[string]func(*testing.T, providers.Host){
			"changed": func(t *testing.T, h providers.Host) { put(t, h, file, "79") },
		},
	})
	_, err := create(t, Sysctl{}, h, attrs{"key": str("net.ipv4.neigh.plt-set0/7.gc_stale_time"), "value": str("seven")})
	wantError(t, err, `stays "60"`)
}

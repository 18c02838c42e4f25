package settings

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/host"
	"plumb/providers/internal/hostkit"
	"plumb/providers/labhost"
)

// lab opens the virtual host (PLUMB_LAB): systemd, modules, interrupts of NICs. Logging in and looking at all of it takes seconds there: a test does both once.
func lab(t *testing.T) func(*testing.T) providers.Host {
	t.Helper()
	conn := labhost.Shared(t)
	facts, err := host.Gather(t.Context(), conn(t))
	if err != nil {
		t.Fatal(err)
	}
	return func(*testing.T) providers.Host {
		return hostkit.New("lab", conn(t), func(context.Context, providers.Conn) (*providers.Facts, error) { return facts, nil })
	}
}

// life takes one instance through apply, an empty plan, and destroy. The whole suite runs on the fake host: here each command takes a second.
func life(t *testing.T, h providers.Host, typ providers.Resource, given attrs, snapshot func(*testing.T, providers.Host) []string) {
	t.Helper()
	before := snapshot(t, h)
	req, err := create(t, typ, h, given)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before, snapshot(t, h)) {
		t.Errorf("%s: nothing changed", typ.Schema().Type)
	}
	got, err := typ.Read(t.Context(), providers.ReadRequest{Host: h, Mark: req.Mark, Prior: req.Planned})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Current.RawEquals(req.Planned) {
		t.Errorf("%s: read %#v, want %#v", typ.Schema().Type, got.Current, req.Planned)
	}
	req.Prior, req.Planned = got.Current, cty.NullVal(req.Planned.Type())
	if _, err := typ.Apply(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, snapshot(t, h)); diff != "" {
		t.Errorf("%s: destroy did not bring back what was there before:\n%s", typ.Schema().Type, diff)
	}
}

func TestLabSettings(t *testing.T) {
	open := lab(t)
	h := open(t)
	defer h.Close()
	modules := func(t *testing.T, h providers.Host) []string {
		var names []string
		for line := range strings.Lines(string(mustRead(t, h, "/proc/modules"))) {
			name, _, _ := strings.Cut(line, " ")
			names = append(names, name)
		}
		return append(names, files("/etc/modules-load.d/*", "/etc/modprobe.d/*")(t, h)...)
	}
	life(t, h, Module{}, attrs{"name": str("bonding"), "at_boot": cty.True, "options": cty.MapVal(attrs{"max_bonds": str("0"), "miimon": str("0x64")})}, modules)
	// The interface that the test comes in by has vectors for certain.
	facts, err := h.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	device := ""
	for _, n := range facts.NICs {
		for _, i := range n.Interfaces {
			if i.Management {
				device = i.Name
			}
		}
	}
	life(t, h, IRQAffinity{}, attrs{"device": str(device), "cpus": str("2")}, files("/proc/irq/[0-9]*/smp_affinity_list"))
	life(t, h, IRQAffinity{}, attrs{"default": cty.True, "cpus": str("0")}, files(irqDefault))
	life(t, h, Sysctl{}, attrs{"key": str("net.core.rmem_max"), "value": str("33554432"), "persistent": cty.True}, files("/proc/sys/net/core/rmem_max", "/etc/sysctl.d/*"))
	life(t, h, File{}, attrs{"path": str("/etc/plt-set/-a b/'c\"$(x)"), "content": str("'$(x)\n"), "owner": str("daemon"), "mode": str("0640")}, func(t *testing.T, h providers.Host) []string {
		return append(files("/etc/plt-set/*/*")(t, h), do(t, h, "sh", "-c", "ls -ldR /etc/plt-set 2>&1; true"))
	})
	life(t, h, Mount{}, attrs{"target": str("/mnt/plt-set/a b"), "source": str("plt set"), "type": str("tmpfs"), "options": strs("size=1m", "noexec"), "persistent": cty.True}, func(t *testing.T, h providers.Host) []string {
		return append(files(fstab)(t, h), do(t, h, "sh", "-c", "ls -d /mnt/plt-set 2>&1; grep plt-set /proc/self/mountinfo; true"))
	})
	wantProblem(t, planOf(t, Module{}, h, attrs{"name": str("plt-none")}), "plt_none", "No such kernel module")
	wantProblem(t, planOf(t, CPUPower{}, h, attrs{"governor": str("performance")}), "Not offered", "virtual machine")
}

func TestLabService(t *testing.T) {
	open := lab(t)
	h := open(t)
	defer h.Close()
	const name, bad = "plt-set.service", "plt-set-bad.service"
	unit := func(name, command string) {
		put(t, h, "/etc/systemd/system/"+name, "[Service]\nExecStart="+command+"\n[Install]\nWantedBy=multi-user.target\n")
	}
	unit(name, "/bin/sleep infinity")
	unit(bad, "/bin/sh -c 'echo it is broken; exit 3'")
	do(t, h, "systemctl", "daemon-reload")
	defer do(t, h, "sh", "-c", "systemctl stop plt-set.service; rm -f /etc/systemd/system/plt-set.service /etc/systemd/system/plt-set-bad.service; systemctl reset-failed; systemctl daemon-reload")
	life(t, h, Service{}, attrs{"name": str("plt-set"), "enabled": cty.True}, func(t *testing.T, h providers.Host) []string {
		return []string{do(t, h, "systemctl", "show", "--property=ActiveState,UnitFileState", "--", name)}
	})
	_, err := create(t, Service{}, h, attrs{"name": str(bad), "timeout": num(60)})
	wantError(t, err, bad, "it is broken")
	wantProblem(t, planOf(t, Service{}, h, attrs{"name": str("hwclock")}), "masked", "systemctl unmask")
}

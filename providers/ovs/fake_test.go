package ovs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
)

// faked opens one fake host, which has hugepages, as often as it is asked.
func faked(t *testing.T) func(*testing.T) providers.Host {
	t.Helper()
	dir := t.TempDir()
	c, err := fake.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteFile(t.Context(), "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", []byte("300"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if unknown := c.Unknown(); len(unknown) > 0 {
			t.Errorf("commands that the fake host does not know: %q", unknown)
		}
	})
	return func(t *testing.T) providers.Host {
		c, err := fake.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return hostkit.New("dut", c, testFacts)
	}
}

func onHost(t *testing.T, h providers.Host, args ...string) string {
	t.Helper()
	res, err := h.Conn().Run(t.Context(), providers.Cmd{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Stdout)
}

// fakeMachine is what a switch must leave as it was.
func fakeMachine(t *testing.T, h providers.Host) []string {
	t.Helper()
	var lines []string
	for _, dir := range []string{"/run", "/run/openvswitch", "/run/plumb", "/etc/openvswitch", "/var/lib/openvswitch", "/var/log", "/var/log/openvswitch"} {
		res, _ := h.Conn().Run(t.Context(), providers.Cmd{Args: []string{"ls", "-A", dir}})
		lines = append(lines, dir+": "+strings.Join(strings.Fields(string(res.Stdout)), " "))
	}
	files, err := h.Conn().ReadFiles(t.Context(), "/proc/[0-9]*/comm", "/sys/devices/system/node/node*/hugepages/hugepages-2048kB/*")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if s := strings.TrimSpace(string(b)); strings.HasPrefix(name, "/sys") {
			lines = append(lines, name+": "+s)
		} else {
			lines = append(lines, "process: "+s)
		}
	}
	slices.Sort(lines)
	return append(lines, onHost(t, h, "update-alternatives", "--query", "ovs-vswitchd"))
}

func TestFakeConformance(t *testing.T) {
	t.Run("switch", func(t *testing.T) {
		conformance.Run(t, conformance.Case{
			Type: switchType{}, Open: faked(t), Snapshot: fakeMachine,
			Config: attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("1")}), "max_idle": num(30000)},
			Update: attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("0-1"), "smc_enable": cty.True})},
			Drift: map[string]func(*testing.T, providers.Host){
				"setting": func(t *testing.T, h providers.Host) {
					onHost(t, h, "ovs-vsctl", "set", "Open_vSwitch", ".", "other_config:pmd-cpu-mask=0x1")
				},
				"daemon stopped": func(t *testing.T, h providers.Host) { onHost(t, h, "ovs-appctl", "exit") },
				"daemon killed": func(t *testing.T, h providers.Host) {
					onHost(t, h, "kill", "-KILL", strings.TrimSpace(onHost(t, h, "cat", daemonPid)))
				},
			},
		})
	})
	t.Run("objects", func(t *testing.T) {
		open := faked(t)
		b := &bed{t: t, host: open(t).(*hostkit.Host), mark: conformanceMark(), last: map[string]cty.Value{}, undo: map[string]json.RawMessage{}, typ: map[string]providers.Resource{}}
		t.Cleanup(func() { _ = b.host.Close() })
		for _, r := range []struct {
			typ  providers.Resource
			addr string
			cfg  attrs
		}{
			{switchType{}, "ovs_switch.s", attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("1")})}},
			{bridgeType{}, "ovs_bridge.br0", attrs{"name": str("br0"), "datapath": str("netdev")}},
			{portType{}, "ovs_port.keep", attrs{"bridge": str("br0"), "name": str("keep"), "type": str("internal"), "ofport": num(1)}},
		} {
			if _, err := b.try(r.typ, r.addr, r.cfg); err != nil {
				t.Fatal(err)
			}
		}
		for name, c := range cases(open, onHost) {
			t.Run(name, func(t *testing.T) { conformance.Run(t, c) })
		}
	})
}

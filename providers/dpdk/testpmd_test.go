package dpdk

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/marked"
	"plumb/providers/internal/transport"
)

func gather(context.Context, providers.Conn) (*providers.Facts, error) {
	return &providers.Facts{Root: true, CPUs: []providers.CPU{{ID: 0, Online: true}, {ID: 1, Online: true}}}, nil
}

func local(*testing.T) providers.Host {
	return hostkit.New("local", transport.NewLocal("local"), gather)
}

// faked opens one fake host, with hugepages, as often as it is asked.
func faked(t *testing.T) func(*testing.T) providers.Host {
	dir := t.TempDir()
	open := func(t *testing.T) providers.Host {
		c, err := fake.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return hostkit.New("fake", c, gather)
	}
	h := open(t)
	defer h.Close()
	setPages(t, h.Conn(), "512")
	return open
}

const pagesFile = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"

func setPages(t *testing.T, conn providers.Conn, n string) {
	t.Helper()
	if err := conn.WriteFile(context.Background(), pagesFile, []byte(n), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := conn.ReadFiles(context.Background(), pagesFile)
	if err != nil || strings.TrimSpace(string(got[pagesFile])) != n {
		t.Fatalf("hugepages are %s: %v; want %s", got[pagesFile], err, n)
	}
}

// real opens this machine with hugepages that are given back when t ends.
func real(t *testing.T) {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the real tests need root")
	}
	conn := transport.NewLocal("local")
	setPages(t, conn, "256")
	t.Cleanup(func() { setPages(t, conn, "0") })
}

func nullPort() cty.Value {
	b := testpmdSchema().Block.Blocks["port"]
	return cty.ListVal([]cty.Value{conformance.Desired(&b.Block, map[string]cty.Value{"vdev": cty.StringVal("net_null0,size=60")})})
}

func config(more map[string]cty.Value) map[string]cty.Value {
	c := map[string]cty.Value{"cores": cty.StringVal("0-1"), "port": nullPort()}
	for k, v := range more {
		c[k] = v
	}
	return c
}

func testpmdCase(open func(*testing.T) providers.Host) conformance.Case {
	kill := func(signal string) func(*testing.T, providers.Host) {
		return func(t *testing.T, h providers.Host) {
			in := newInstance(h, providers.Mark{Testbed: "conformance", Address: "dpdk_testpmd.test"})
			p, err := in.find(t.Context())
			if err != nil || p == nil {
				t.Fatalf("find: %v, %v", p, err)
			}
			if _, err := h.Conn().Run(t.Context(), providers.Cmd{Args: []string{"kill", "-" + signal, strconv.Itoa(p.pid)}}); err != nil {
				t.Fatal(err)
			}
			if err := marked.Poll(t.Context(), quitLimit, func() (bool, error) { p, err := in.find(t.Context()); return p == nil, err }); err != nil {
				t.Fatal(err)
			}
		}
	}
	return conformance.Case{
		Type: NewTestpmd(), Open: open, Config: config(nil),
		Update: config(map[string]cty.Value{"forward_mode": cty.StringVal("macswap"), "file_prefix": cty.StringVal("other"), "cores": cty.StringVal("0,1")}),
		Drift:  map[string]func(*testing.T, providers.Host){"killed": kill("KILL"), "ended": kill("TERM")},
		Snapshot: func(t *testing.T, h providers.Host) []string {
			files, err := h.Conn().ReadFiles(t.Context(), "/run/plumb/*", "/run/plumb/*/*/*", "/run/dpdk/*/*.map_*", "/proc/[0-9]*/comm",
				"/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages")
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for name, data := range files {
				switch {
				case !strings.HasPrefix(name, "/proc/"):
					out = append(out, name+": "+string(data))
				case strings.Contains(string(data), "testpmd"):
					out = append(out, "a testpmd runs")
				}
			}
			slices.Sort(out)
			return out
		},
	}
}

func TestConformance(t *testing.T) { conformance.Run(t, testpmdCase(faked(t))) }

func TestRealConformance(t *testing.T) {
	real(t)
	conformance.Run(t, testpmdCase(local))
}

// create applies a new dpdk_testpmd.
func create(t *testing.T, h providers.Host, c map[string]cty.Value) error {
	t.Helper()
	typ := NewTestpmd()
	planned := conformance.Desired(&typ.Schema().Block, c)
	m := planned.AsValueMap()
	m["file_prefix"], m["command"] = cty.UnknownVal(cty.String), cty.UnknownVal(cty.List(cty.String))
	planned = cty.ObjectVal(m)
	_, err := typ.Apply(t.Context(), providers.ApplyRequest{Host: h, Mark: providers.Mark{Testbed: "t", Address: "dpdk_testpmd.x"},
		Prior: cty.NullVal(planned.Type()), Planned: planned, Log: func(s string) { t.Log(s) }})
	return err
}

func wantNothingLeft(t *testing.T, h providers.Host) {
	t.Helper()
	files, err := h.Conn().ReadFiles(t.Context(), "/run/plumb/*/*/*", "/run/dpdk/plumb-*/*")
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		t.Errorf("left behind: %s", name)
	}
}

func TestStartFailures(t *testing.T)     { startFailures(t, faked(t)(t)) }
func TestRealStartFailures(t *testing.T) { real(t); startFailures(t, local(t)) }

func startFailures(t *testing.T, h providers.Host) {
	defer h.Close()
	for name, c := range map[string]struct {
		config map[string]cty.Value
		want   string
	}{
		"too little memory": {config(map[string]cty.Value{"memory": cty.ListVal([]cty.Value{cty.NumberIntVal(100000)})}), "Requested: 100000MB"},
	} {
		t.Run(name, func(t *testing.T) {
			err := create(t, h, c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v; want %q in it", err, c.want)
			}
			wantNothingLeft(t, h)
		})
	}
}

// A socket on which somebody else listens is not taken over.
func TestRealForeignSocket(t *testing.T) {
	real(t)
	h := local(t)
	defer h.Close()
	sock := filepath.Join(t.TempDir(), "vnf")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := testpmdSchema().Block.Blocks["port"]
	port := cty.ListVal([]cty.Value{conformance.Desired(&b.Block, map[string]cty.Value{"vhost_user": cty.StringVal(sock)})})
	if err := create(t, h, map[string]cty.Value{"cores": cty.StringVal("0-1"), "port": port}); !errors.Is(err, providers.ErrForeign) {
		t.Errorf("error is %v; want one that wraps ErrForeign", err)
	}
	if _, err := os.Stat(sock); err != nil {
		t.Errorf("the foreign socket was touched: %v", err)
	}
	wantNothingLeft(t, h)
}

func TestFailure(t *testing.T) {
	for log, want := range map[string]string{
		"EAL: Detected CPU lcores: 2\nvhost_user: Too many memory regions\ntestpmd> ":                                                                          "vhost_user: Too many memory regions",
		"virtio_user_start_device(): (/tmp/v) Failed to start device\n":                                                                                        "virtio_user_start_device(): (/tmp/v) Failed to start device",
		"EAL: Not enough memory available! Requested: 128MB, available: 36MB\n":                                                                                "EAL: Not enough memory available! Requested: 128MB, available: 36MB",
		"Error during enabling promiscuous mode for port 0: Operation not supported - ignore\nEAL: No free 1048576 kB hugepages reported on node 0\ntestpmd> ": "",
	} {
		if got := failure(log); got != want {
			t.Errorf("failure(%q) = %q; want %q", log, got, want)
		}
	}
}

func TestWaitingFor(t *testing.T) {
	const wait = "EAL: x\nvhost_user_start_server(): (/run/v1) waiting for client connection...\n"
	if got := waitingFor(wait); got != "/run/v1" {
		t.Errorf("got %q", got)
	}
	if got := waitingFor(wait + "virtio_user_dev_init_mac(): random\n"); got != "" {
		t.Errorf("got %q after it went on", got)
	}
}

func TestArgv(t *testing.T) {
	yes, no := true, false
	s := spec{cores: []int{1, 3, 5}, main: 3, mode: "mac", memory: []int64{0, 256}, prefix: "p", mbufs: 4096, rxq: 2, txd: 512, burst: 32, topo: "chained", oneFile: true, inMem: true,
		auto: true, eal: []string{"--log-level", "7"}, app: []string{"--rss-udp"},
		ports: []port{{socket: "/run/a", server: true, queues: 2, packed: &yes, mrgRxbuf: &no, queueSize: 1024, mac: "02:00:00:00:00:01", peer: "02:00:00:00:00:02"}, {socket: "/run/b"}, {vdev: "net_null0"}, {pci: "0000:01:00.0"}}}
	want := "dpdk-testpmd -l 1,3,5 --main-lcore 3 -n 1 --file-prefix p --socket-mem 0,256 --single-file-segments --in-memory " +
		"--vdev net_virtio_user0,path=/run/a,queues=2,server=1,packed_vq=1,mrg_rxbuf=0,queue_size=1024,mac=02:00:00:00:00:01 --vdev net_virtio_user1,path=/run/b,queues=1 " +
		"--vdev net_null0 -a 0000:01:00.0 --log-level 7 -- -i --nb-cores=2 --coremask=0x22 --forward-mode=mac --total-num-mbufs=4096 --port-topology=chained --rxq=2 --txd=512 " +
		"--burst=32 --eth-peer=0,02:00:00:00:00:02 --auto-start --rss-udp"
	if diff := cmp.Diff(strings.Fields(want), s.argv()); diff != "" {
		t.Error(diff)
	}
	left := leftBy(s.argv())
	if diff := cmp.Diff([]string{"/run/a"}, left.sockets()); diff != "" || left.prefix != "p" {
		t.Errorf("prefix %q, sockets %s", left.prefix, diff)
	}
}

func TestFolder(t *testing.T) {
	if got := folder("bed", "dpdk_testpmd.vnf"); got != "/run/plumb/bed/dpdk_testpmd.vnf" {
		t.Error(got)
	}
	a, b := folder("bed", `dpdk_testpmd.vnf["a/b"]`), folder("bed", `dpdk_testpmd.vnf["a_b"]`)
	if a == b || strings.ContainsAny(a+b, `[]*?"`) || strings.Count(a, "/") != 4 {
		t.Errorf("%q, %q", a, b)
	}
}

// Whatever a process answers, it is counters or an error, and the same twice.
func FuzzDecodeAnswer(f *testing.F) {
	f.Add([]byte(`{"/ethdev/stats":{"ipackets":7}}`))
	f.Add([]byte(`{"/ethdev/stats":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a, b stats
		errA, errB := decodeAnswer(raw, "/ethdev/stats,0", &a), decodeAnswer(raw, "/ethdev/stats,0", &b)
		if (errA == nil) != (errB == nil) || a != b {
			t.Errorf("%q: %v, %+v and %v, %+v", raw, errA, a, errB, b)
		}
	})
}

// A log may hold anything: an answer is a part of it.
func FuzzParseAnswer(f *testing.F) {
	f.Add("testpmd> stop\nDone.\ntestpmd> ", "stop")
	f.Fuzz(func(t *testing.T, log, line string) {
		if out, done := parseAnswer(log, line); done && !strings.Contains(log, line+out+prompt) {
			t.Errorf("%q is not a part of %q", out, log)
		}
		txDropped(log)
		failure(log)
		waitingFor(log)
	})
}

package fake_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/fake"
	"plumb/providers/internal/ovsdb"
	"plumb/providers/internal/transport/transporttest"
	"plumb/providers/internal/unixctl"
)

func open(t *testing.T, dir string) *fake.Conn {
	t.Helper()
	c, err := fake.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Host {
		c := open(t, t.TempDir())
		run(t, c, "mkdir", "/tmp/test")
		c.Serve("/run/echo.sock", func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
		return transporttest.Host{Conn: c, Dir: "/tmp/test", Echo: "/run/echo.sock"}
	})
}

func run(t *testing.T, c providers.Conn, args ...string) string {
	t.Helper()
	return runWith(t, c, "", args...)
}

func runWith(t *testing.T, c providers.Conn, stdin string, args ...string) string {
	t.Helper()
	res, err := c.Run(t.Context(), providers.Cmd{Args: args, Stdin: []byte(stdin)})
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Stdout)
}

func fails(t *testing.T, c providers.Conn, status int, text string, args ...string) {
	t.Helper()
	_, err := c.Run(t.Context(), providers.Cmd{Args: args})
	var exit *providers.ExitError
	if !errors.As(err, &exit) || exit.Exit != status || !strings.Contains(err.Error(), text) {
		t.Fatalf("%v: %v; want status %d and %q", args, err, status, text)
	}
}

func read(t *testing.T, c providers.Conn, name string) string {
	t.Helper()
	m, err := c.ReadFiles(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(m[name]))
}

func write(t *testing.T, c providers.Conn, name, text string) {
	t.Helper()
	if err := c.WriteFile(t.Context(), name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	global = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
	node0  = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/"
)

func TestHugepages(t *testing.T) {
	c := open(t, t.TempDir())
	write(t, c, node0+"nr_hugepages", "300\n")
	for file, want := range map[string]string{node0 + "nr_hugepages": "300", node0 + "free_hugepages": "300", global + "nr_hugepages": "300", global + "free_hugepages": "300"} {
		if got := read(t, c, file); got != want {
			t.Errorf("%s is %s", file, got)
		}
	}
	write(t, c, global+"nr_hugepages", "101")
	if a, b := read(t, c, node0+"nr_hugepages"), read(t, c, global+"nr_hugepages"); a != "51" || b != "101" {
		t.Error(a, b)
	}
	if err := c.Set(fake.Settings{HugepageLimit: map[string]int{"2048kB": 10}}); err != nil {
		t.Fatal(err)
	}
	write(t, c, node0+"nr_hugepages", "100")
	if got := read(t, c, node0+"nr_hugepages"); got != "10" {
		t.Error("granted", got)
	}
	if err := c.WriteFile(t.Context(), node0+"nr_hugepages", []byte("many"), 0o644); err == nil {
		t.Error("a word was taken for a number")
	}
	if err := c.WriteFile(t.Context(), "/sys/kernel/nonsense", nil, 0o644); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	run(t, c, "mount", "-t", "hugetlbfs", "-o", "pagesize=1G", "hugetlbfs", "/dev/hugepages")
	if got := read(t, c, "/proc/mounts"); !strings.Contains(got, "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=1024M 0 0") {
		t.Error(got)
	}
	run(t, c, "umount", "/dev/hugepages")
	fails(t, c, 32, "not mounted", "umount", "/dev/hugepages")
}

// boot starts Open vSwitch with DPDK as a person would.
func boot(t *testing.T, c providers.Conn) {
	t.Helper()
	write(t, c, node0+"nr_hugepages", "400")
	run(t, c, "update-alternatives", "--set", "ovs-vswitchd", "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
	run(t, c, "mkdir", "-p", "/var/run/openvswitch", "/var/log/openvswitch")
	run(t, c, "ovsdb-tool", "create", "/etc/openvswitch/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
	run(t, c, "/usr/sbin/ovsdb-server", "/etc/openvswitch/conf.db", "--remote=punix:/var/run/openvswitch/db.sock", "--pidfile", "--detach", "--log-file")
	db := database(t, c)
	_, err := db.Transact(t.Context(), ovsdb.DB, ovsdb.Insert("Open_vSwitch", ovsdb.Row{"other_config": ovsdb.Map(map[string]string{"dpdk-init": "true", "dpdk-socket-mem": "512"})}))
	if err != nil {
		t.Fatal(err)
	}
	startSwitch(t, c)
}

func startSwitch(t *testing.T, c providers.Conn) {
	t.Helper()
	run(t, c, "/usr/sbin/ovs-vswitchd", "unix:/var/run/openvswitch/db.sock", "--pidfile", "--detach", "--log-file")
}

func database(t *testing.T, c providers.Conn) *ovsdb.Client {
	t.Helper()
	conn, err := c.Dial(t.Context(), "unix", "/var/run/openvswitch/db.sock")
	if err != nil {
		t.Fatal(err)
	}
	db, err := ovsdb.Dial(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func appctlExit(t *testing.T, c providers.Conn, daemon string) {
	t.Helper()
	pid := read(t, c, "/run/openvswitch/"+daemon+".pid")
	conn, err := c.Dial(t.Context(), "unix", "/var/run/openvswitch/"+daemon+"."+pid+".ctl")
	if err != nil {
		t.Fatal(err)
	}
	ctl := unixctl.New(conn)
	defer ctl.Close()
	if _, err := ctl.Run(t.Context(), "nonsense"); err == nil || !strings.Contains(err.Error(), "not a valid command") {
		t.Error(err)
	}
	if _, err := ctl.Run(t.Context(), "exit"); err != nil {
		t.Fatal(err)
	}
	if read(t, c, "/proc/"+pid+"/comm") != "" || read(t, c, "/run/openvswitch/"+daemon+".pid") != "" {
		t.Error(daemon, "is still there")
	}
}

func addPort(bridge, name, typ string, options map[string]string) []ovsdb.Op {
	return []ovsdb.Op{
		ovsdb.Insert("Interface", ovsdb.Row{"name": name, "type": typ, "options": ovsdb.Map(options)}).Named("i"),
		ovsdb.Insert("Port", ovsdb.Row{"name": name, "interfaces": ovsdb.NamedUUID("i")}).Named("p"),
		ovsdb.Mutate("Bridge", []ovsdb.Mutation{ovsdb.Mutator("ports", "insert", ovsdb.NamedUUID("p"))}, ovsdb.Where("name", "==", bridge)),
	}
}

func iface(t *testing.T, db *ovsdb.Client, name string) ovsdb.Row {
	t.Helper()
	res, err := db.Transact(t.Context(), ovsdb.DB, ovsdb.Select("Interface", ovsdb.Where("name", "==", name)))
	if err != nil || len(res[0].Rows) != 1 {
		t.Fatal(res, err)
	}
	return res[0].Rows[0]
}

func TestOpenVSwitch(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	boot(t, c)
	if got := read(t, c, node0+"free_hugepages"); got != "144" {
		t.Error("free pages", got)
	}
	db := database(t, c)
	br := []ovsdb.Op{
		ovsdb.Insert("Interface", ovsdb.Row{"name": "br0", "type": "internal"}).Named("i"),
		ovsdb.Insert("Port", ovsdb.Row{"name": "br0", "interfaces": ovsdb.NamedUUID("i")}).Named("p"),
		ovsdb.Insert("Bridge", ovsdb.Row{"name": "br0", "datapath_type": "netdev", "ports": ovsdb.NamedUUID("p")}).Named("b"),
		ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{ovsdb.Mutator("bridges", "insert", ovsdb.NamedUUID("b"))}),
	}
	for _, ops := range [][]ovsdb.Op{br, addPort("br0", "v0", "dpdkvhostuserclient", map[string]string{"vhost-server-path": "/tmp/v0"}),
		addPort("br0", "bad", "nonsense", nil), addPort("br0", "v1", "dpdkvhostuserclient", map[string]string{"vhost-server-path": "/tmp/v1"})} {
		if _, err := db.Apply(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int64{"br0": 65534, "v0": 1, "bad": -1, "v1": 2} {
		if n, _ := ovsdb.Int(iface(t, db, name)["ofport"]); n != want {
			t.Errorf("%s has number %d, want %d", name, n, want)
		}
	}
	if got := ovsdb.String(iface(t, db, "bad")["error"]); !strings.Contains(got, "could not open network device bad") {
		t.Error(got)
	}

	if got := run(t, c, "ovs-ofctl", "dump-flows", "br0"); got != " table=0,priority=0 actions=normal\n" {
		t.Errorf("%q", got)
	}
	runWith(t, c, "in_port=v0 actions=output:v1\nin_port=2 actions=1\n", "ovs-ofctl", "-O", "OpenFlow14", "--bundle", "replace-flows", "br0", "-")
	flows := run(t, c, "ovs-ofctl", "dump-flows", "br0")
	if strings.Count(flows, "\n") != 2 || !strings.Contains(flows, "in_port=1 actions=output:2") {
		t.Errorf("%q", flows)
	}
	if _, err := c.Run(t.Context(), providers.Cmd{Args: []string{"ovs-ofctl", "replace-flows", "br0", "-"}, Stdin: []byte("in_port=1 actions=drop\nin_port=nobody actions=drop\n")}); err == nil {
		t.Error("a flow of an unknown port was taken")
	}
	if got := run(t, c, "ovs-ofctl", "dump-flows", "br0"); got != flows {
		t.Errorf("half a bundle was taken: %q", got)
	}
	fails(t, c, 1, "is not a bridge", "ovs-ofctl", "dump-flows", "br9")

	// A tester connects; another process sees all of it.
	if err := c.Start(t.Context(), providers.Process{Dir: "/run/vnf", Args: []string{"dpdk-testpmd", "-m", "128", "--vdev", "net_virtio_user0,path=/tmp/v0,server=1", "--", "-i"}}); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if got := ovsdb.StringMap(iface(t, database(t, again), "v0")["status"])["status"]; got != "connected" {
		t.Error(got)
	}
	if got := read(t, again, "/run/vnf/log"); !strings.HasSuffix(got, "testpmd>") || !strings.Contains(got, "Too many memory regions") {
		t.Error(got)
	}
	// One that nobody connects to waits, until somebody does.
	if err := c.Start(t.Context(), providers.Process{Dir: "/run/late", Args: []string{"dpdk-testpmd", "--single-file-segments", "--file-prefix", "late", "--vdev", "net_virtio_user0,path=/tmp/v2,server=1", "--", "-i"}}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c, "/run/late/log"); !strings.HasSuffix(got, "(/tmp/v2) waiting for client connection...") {
		t.Error(got)
	}
	if got := read(t, c, "/proc/net/unix"); !strings.Contains(got, " 00010000 0001 01 ") || !strings.Contains(got, " /tmp/v2") {
		t.Error(got)
	}
	if _, err := db.Apply(t.Context(), addPort("br0", "v2", "dpdkvhostuserclient", map[string]string{"vhost-server-path": "/tmp/v2"})...); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c, "/run/late/log"); !strings.HasSuffix(got, "testpmd>") || strings.Contains(got, "Too many") {
		t.Error(got)
	}
	run(t, again, "kill", "-KILL", read(t, again, "/run/late/pid"))
	run(t, again, "kill", read(t, again, "/run/vnf/pid"))
	if got := ovsdb.StringMap(iface(t, db, "v0")["status"])["status"]; got != "disconnected" || read(t, c, "/run/vnf/exit") != "143" {
		t.Error(got)
	}

	appctlExit(t, c, "ovs-vswitchd")
	if got := read(t, c, node0+"free_hugepages"); got != "400" {
		t.Error("free pages", got)
	}
	startSwitch(t, c)
	if got := run(t, c, "ovs-ofctl", "dump-flows", "br0"); got != " table=0,priority=0 actions=normal\n" {
		t.Errorf("flows outlived the daemon: %q", got)
	}
	if n, _ := ovsdb.Int(iface(t, db, "v1")["ofport"]); n != 2 {
		t.Error("number", n)
	}
	appctlExit(t, c, "ovs-vswitchd")
	appctlExit(t, c, "ovsdb-server")
	if _, err := c.Dial(t.Context(), "unix", "/var/run/openvswitch/db.sock"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestDPDKDoesNotStart(t *testing.T) {
	for name, s := range map[string]struct {
		pages string
		set   fake.Settings
		want  string
	}{
		"too little memory": {"100", fake.Settings{}, "Not enough memory available on socket 0! Requested: 512MB, available: 200MB"},
		"EAL says no":       {"400", fake.Settings{EAL: "Invalid 'command line' arguments."}, "Invalid 'command line' arguments."},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, t.TempDir())
			boot(t, c)
			appctlExit(t, c, "ovs-vswitchd")
			write(t, c, node0+"nr_hugepages", s.pages)
			if err := c.Set(s.set); err != nil {
				t.Fatal(err)
			}
			fails(t, c, 1, "Aborted", "/usr/sbin/ovs-vswitchd", "unix:/var/run/openvswitch/db.sock", "--pidfile", "--detach", "--log-file")
			if got := run(t, c, "tail", "-n", "4", "/var/log/openvswitch/ovs-vswitchd.log"); !strings.Contains(got, s.want) {
				t.Error(got)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	c := open(t, t.TempDir())
	boot(t, c)
	broken := errors.New("the cable was pulled")
	var calls []fake.Call
	c.Hook(func(call fake.Call) error {
		calls = append(calls, call)
		if len(calls) == 2 {
			return broken
		}
		return nil
	})
	run(t, c, "true")
	if _, err := c.ReadFiles(t.Context(), "/proc/cmdline"); !errors.Is(err, broken) {
		t.Error(err)
	}
	run(t, c, "true")
	if calls[1].Method != "ReadFiles" || calls[1].Detail != "/proc/cmdline" || calls[2].N != calls[1].N+1 {
		t.Error(calls)
	}
	c.Hook(nil)

	db := database(t, c)
	c.Cut()
	if _, err := db.Databases(t.Context()); err == nil {
		t.Error("a cut connection works")
	}
	if _, err := database(t, c).Databases(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnknownCommandsAreListed(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	fails(t, c, 127, "not found", "dpdk-devbind.py", "--status")
	if got := open(t, dir).Unknown(); len(got) != 1 || got[0] != "dpdk-devbind.py --status" {
		t.Error(got)
	}
}

func TestUnprivileged(t *testing.T) {
	c := open(t, t.TempDir())
	if err := c.Set(fake.Settings{Unprivileged: true, NoOVS: true}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, c, "id", "-u"); got != "1000\n" {
		t.Error(got)
	}
	if err := c.WriteFile(t.Context(), node0+"nr_hugepages", []byte("1"), 0o644); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	fails(t, c, 127, "not found", "/usr/sbin/ovs-vswitchd", "--version")
	fails(t, c, 1, "", "which", "ovs-vswitchd")
	if got := c.Unknown(); len(got) > 0 {
		t.Error("what is not installed is not unknown to the fake:", got)
	}
}

// TestWaitsAcrossConnections: a wait of one connection ends by what another one does.
func TestWaitsAcrossConnections(t *testing.T) {
	c := open(t, t.TempDir())
	boot(t, c)
	a, b := database(t, c), database(t, c)
	done := make(chan error, 1)
	seen := make(chan struct{}, 10)
	go func() {
		done <- a.Watch(t.Context(), ovsdb.DB, "Open_vSwitch", []string{"cur_cfg"}, func(rows map[string]ovsdb.Row) bool {
			seen <- struct{}{}
			for _, r := range rows {
				if n, _ := ovsdb.Int(r["cur_cfg"]); n > 0 {
					return true
				}
			}
			return false
		})
	}()
	<-seen
	if err := b.WaitApplied(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.WaitApplied(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTestpmd(t *testing.T) {
	c := open(t, t.TempDir())
	write(t, c, node0+"nr_hugepages", "100")
	p := providers.Process{Dir: "/run/vnf", Args: []string{"stdbuf", "-oL", "dpdk-testpmd", "-m", "128", "--file-prefix", "vnf", "--vdev", "net_null0", "--", "-i"}}
	if err := c.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	pid := read(t, c, "/run/vnf/pid")
	if got := read(t, c, "/proc/"+pid+"/comm"); got != "dpdk-testpmd" || read(t, c, node0+"free_hugepages") != "36" {
		t.Error(got)
	}
	if _, err := c.Dial(t.Context(), "unix", "/var/run/dpdk/vnf/dpdk_telemetry.v2"); err == nil {
		t.Error("a stream reached a socket of messages")
	}
	conn, err := c.Dial(t.Context(), "unixpacket", "/var/run/dpdk/vnf/dpdk_telemetry.v2")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buf := make([]byte, 16384)
	message := func(want string) {
		t.Helper()
		n, err := conn.Read(buf)
		if err != nil || !strings.Contains(string(buf[:n]), want) {
			t.Fatalf("%s, %v; want %s", buf[:n], err, want)
		}
	}
	message("DPDK 22.11.11")
	for _, x := range [][2]string{{"/ethdev/list", `{"/ethdev/list":[0]}`}, {"/ethdev/stats,0", `"ipackets":0`}, {"/ethdev/stats,7", `null`}} {
		if _, err := io.WriteString(conn, x[0]); err != nil {
			t.Fatal(err)
		}
		message(x[1])
	}
	runWith(t, c, "start\nbogus\n", "dd", "of=/run/vnf/stdin", "oflag=nonblock", "conv=nocreat,notrunc", "status=none")
	if got := read(t, c, "/run/vnf/log"); !strings.Contains(got, "start\ntestpmd> bogus\nCommand not found") {
		t.Error(got)
	}
	runWith(t, c, "quit\n", "dd", "of=/run/vnf/stdin")
	if got := read(t, c, "/run/vnf/exit"); got != "0" || read(t, c, node0+"free_hugepages") != "100" {
		t.Error(got)
	}
	fails(t, c, 1, "No such device", "dd", "of=/run/vnf/stdin")

	// Without memory it logs why and ends.
	p.Args = append(p.Args[:4:4], append([]string{"4000"}, p.Args[5:]...)...)
	if err := c.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c, "/run/vnf/log"); !strings.Contains(got, "Not enough memory available! Requested: 4000MB, available: 200MB") || read(t, c, "/run/vnf/exit") != "1" {
		t.Error(got)
	}
}

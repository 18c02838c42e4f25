package vhost

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// realOVS is an Open vSwitch with DPDK of the test's own: its database, sockets and logs are in dir, and nothing of the system's is touched but
// hugepages. Its one PMD thread is on CPU 0.
type realOVS struct {
	t       testing.TB
	dir     string
	bridge  string
	switchd *exec.Cmd
}

const (
	ovsDaemon = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
	pagesFile = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
)

// newRealOVS needs PLUMB_REAL, root, and Debian's openvswitch-switch-dpdk.
func newRealOVS(t testing.TB) *realOVS {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set: no test starts Open vSwitch")
	}
	if os.Getuid() != 0 {
		t.Fatal("PLUMB_REAL is set, but this is not root")
	}
	dir, err := os.MkdirTemp("", "vh") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	o := &realOVS{t: t, dir: dir, bridge: "plgvh0"}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "ovs-vswitchd.log"))
			t.Logf("ovs-vswitchd said:\n%s", log[max(0, len(log)-4000):])
		}
		os.RemoveAll(dir)
	})
	o.hugepages("400")
	o.run("ovsdb-tool", "create", dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
	db := o.daemon("ovsdb-server", dir+"/conf.db", "--remote=punix:"+dir+"/db.sock", "--unixctl="+dir+"/db.ctl", "--log-file="+dir+"/ovsdb-server.log")
	t.Cleanup(func() { o.kill(db) })
	o.wait("ovsdb-server", func() bool { _, err := os.Stat(dir + "/db.sock"); return err == nil })
	o.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true", "other_config:dpdk-extra=--no-pci",
		"other_config:dpdk-alloc-mem=256", "other_config:pmd-cpu-mask=0x1", "other_config:dpdk-lcore-mask=0x2")
	o.start()
	t.Cleanup(func() { o.kill(o.switchd) })
	o.vsctl("add-br", o.bridge, "--", "set", "bridge", o.bridge, "datapath_type=netdev")
	t.Cleanup(func() { o.vsctl("del-br", o.bridge) }) // and with it the kernel's tap
	return o
}

// hugepages puts so many there for the time of the test.
func (o *realOVS) hugepages(n string) {
	before, err := os.ReadFile(pagesFile)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(pagesFile, []byte(n), 0); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		if err := os.WriteFile(pagesFile, before, 0); err != nil {
			o.t.Error(err)
		}
	})
	if exec.Command("mountpoint", "-q", "/dev/hugepages").Run() != nil {
		o.run("mkdir", "-p", "/dev/hugepages")
		o.run("mount", "-t", "hugetlbfs", "none", "/dev/hugepages")
		o.t.Cleanup(func() { o.run("umount", "/dev/hugepages") })
	}
}

func (o *realOVS) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_LOGDIR="+o.dir, "OVS_DBDIR="+o.dir)
	return cmd
}

func (o *realOVS) run(name string, args ...string) string {
	o.t.Helper()
	out, err := o.command(name, args...).CombinedOutput()
	if err != nil {
		o.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (o *realOVS) vsctl(args ...string) string {
	o.t.Helper()
	return o.run("ovs-vsctl", append([]string{"--db=unix:" + o.dir + "/db.sock", "--timeout=60"}, args...)...)
}

// daemon starts one in a session of its own, which on a kernel with autogroups is what its share of a CPU goes by.
func (o *realOVS) daemon(name string, args ...string) *exec.Cmd {
	o.t.Helper()
	cmd := o.command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	return cmd
}

// stop ends ovs-vswitchd so that it has the time to remove its sockets: it can't be started again beside old ones.
func (o *realOVS) stop() {
	_ = o.switchd.Process.Signal(syscall.SIGTERM)
	_ = o.switchd.Wait()
}

func (o *realOVS) kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// start starts ovs-vswitchd and waits until it has DPDK and has done what the database says.
func (o *realOVS) start() {
	o.t.Helper()
	o.switchd = o.daemon(ovsDaemon, "unix:"+o.dir+"/db.sock", "--unixctl="+o.dir+"/switchd.ctl", "--log-file="+o.dir+"/ovs-vswitchd.log")
	_ = os.WriteFile("/proc/"+strconv.Itoa(o.switchd.Process.Pid)+"/autogroup", []byte("-10"), 0) // where there are autogroups
	o.wait("DPDK", func() bool { return strings.Contains(o.vsctl("get", "Open_vSwitch", ".", "dpdk_initialized"), "true") })
	o.vsctl("set", "Open_vSwitch", ".", "external_ids:start="+strconv.Itoa(o.switchd.Process.Pid)) // waits for it to be done
}

// wait waits for a condition of a daemon.
func (o *realOVS) wait(what string, cond func() bool) {
	o.t.Helper()
	after := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-after:
			o.t.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
}

// port adds a vhost-user port and gives the Config to get at it. server: we own the socket.
func (o *realOVS) port(name string, server bool) Config {
	o.t.Helper()
	if server {
		o.vsctl("add-port", o.bridge, name, "--", "set", "Interface", name, "type=dpdkvhostuserclient", "options:vhost-server-path="+o.dir+"/"+name)
	} else {
		o.vsctl("add-port", o.bridge, name, "--", "set", "Interface", name, "type=dpdkvhostuser")
	}
	return Config{Socket: filepath.Join(o.dir, name), Server: server}
}

func (o *realOVS) flows(flows ...string) {
	o.t.Helper()
	o.run("ovs-ofctl", "del-flows", o.bridge)
	for _, f := range flows {
		o.run("ovs-ofctl", "add-flow", o.bridge, f)
	}
}

// counted is what the port counted. Ports of type dpdkvhostuser have question marks there instead (Open vSwitch 3.1).
func (o *realOVS) counted(port, counter string) int {
	o.t.Helper()
	return o.number(counter+` pkts=(\d+)`, "dump-ports", o.bridge, port)
}

// settled is counted when it has come to at least n: a frame is counted after it was taken.
func (o *realOVS) settled(port, counter string, n int) (got int) {
	o.t.Helper()
	o.wait(fmt.Sprintf("%d frames in %s of %s", n, counter, port), func() bool { got = o.counted(port, counter); return got >= n })
	return got
}

// matched is how many frames a flow with this cookie took. It lags behind by up to a second.
func (o *realOVS) matched(cookie int) int {
	o.t.Helper()
	return o.number(`n_packets=(\d+)`, "dump-flows", o.bridge, fmt.Sprintf("cookie=%d/-1", cookie))
}

func (o *realOVS) number(pattern string, ofctl ...string) int {
	o.t.Helper()
	out := o.run("ovs-ofctl", ofctl...)
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		o.t.Fatalf("no %s in %s", pattern, out)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

package ovsdb_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers/internal/ovsdb"
	"plumb/providers/internal/ovsdb/ovsdbtest"
)

// TestClient runs the suite on the server in memory.
func TestClient(t *testing.T) {
	suite(t, func(t *testing.T) func() net.Conn {
		return ovsdbtest.New(ovsdbtest.NewDatabase(), nil).Dial
	})
}

// TestClientReal runs it on a private ovsdb-server, which touches nothing of the machine's.
func TestClientReal(t *testing.T) {
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set")
	}
	suite(t, func(t *testing.T) func() net.Conn {
		dir, err := os.MkdirTemp("", "plumb-ovsdb")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if out, err := exec.Command("ovsdb-tool", "create", dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		sock := filepath.Join(dir, "db.sock")
		server := exec.Command("ovsdb-server", dir+"/conf.db", "--remote=punix:"+sock, "--unixctl="+dir+"/ctl", "--log-file="+dir+"/log")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
		dial := func() net.Conn {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			limit := time.After(time.Minute)
			for {
				c, err := net.Dial("unix", sock)
				if err == nil {
					return c
				}
				select {
				case <-tick.C:
				case <-limit:
					t.Fatal(err)
				}
			}
		}
		_ = dial().Close()
		return dial
	})
}

type row = ovsdb.Row

func suite(t *testing.T, start func(t *testing.T) (dial func() net.Conn)) {
	for name, test := range map[string]func(*testing.T, func() *ovsdb.Client){
		"Schema": testSchema, "Values": testValues, "Mutate": testMutate, "Atomic": testAtomic, "Garbage": testGarbage, "Errors": testErrors,
		"Wait": testWait, "Apply": testApply, "Watch": testWatch, "Cancel": testCancel, "Conditions": testConditions, "Update": testUpdate,
	} {
		t.Run(name, func(t *testing.T) {
			dial := start(t)
			open := func() *ovsdb.Client {
				c, err := ovsdb.Dial(t.Context(), dial())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			must(t, open(), ovsdb.Insert("Open_vSwitch", row{}))
			test(t, open)
		})
	}
}

func must(t *testing.T, c *ovsdb.Client, ops ...ovsdb.Op) []ovsdb.Result {
	t.Helper()
	res, err := c.Transact(t.Context(), ovsdb.DB, ops...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// refused runs a transaction that must not go through.
func refused(t *testing.T, c *ovsdb.Client, ops ...ovsdb.Op) *ovsdb.OpError {
	t.Helper()
	_, err := c.Transact(t.Context(), ovsdb.DB, ops...)
	var e *ovsdb.OpError
	if !errors.As(err, &e) {
		t.Fatalf("not refused: %v", err)
	}
	return e
}

// addBridge is what ovs-vsctl add-br does.
func addBridge(name string) []ovsdb.Op {
	return []ovsdb.Op{
		ovsdb.Insert("Interface", row{"name": name, "type": "internal"}).Named("i"),
		ovsdb.Insert("Port", row{"name": name, "interfaces": ovsdb.NamedUUID("i")}).Named("p"),
		ovsdb.Insert("Bridge", row{"name": name, "ports": ovsdb.NamedUUID("p"), "external_ids": ovsdb.Map(map[string]string{"mark": "x"})}).Named("b"),
		ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{ovsdb.Mutator("bridges", "insert", ovsdb.NamedUUID("b"))}),
	}
}

func names(t *testing.T, c *ovsdb.Client, table string) []string {
	t.Helper()
	var out []string
	for _, r := range must(t, c, ovsdb.Select(table).Columns("name"))[0].Rows {
		out = append(out, ovsdb.String(r["name"]))
	}
	slices.Sort(out)
	return out
}

func testSchema(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	dbs, err := c.Databases(t.Context())
	if err != nil || !slices.Contains(dbs, ovsdb.DB) {
		t.Fatal(dbs, err)
	}
	s, err := c.Schema(t.Context(), ovsdb.DB)
	if err != nil || !s.Has("Interface", "mtu_request") || s.Has("Interface", "nonsense") || s.Has("Nonsense", "name") {
		t.Fatal(s, err)
	}
	if _, err := c.Schema(t.Context(), "nonsense"); err == nil || !strings.Contains(err.Error(), "unknown database") {
		t.Fatal(err)
	}
}

func testValues(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	ops := append(addBridge("br0"), ovsdb.Select("Bridge", ovsdb.Where("name", "==", "br0")))
	res := must(t, c, ops...)
	r := res[4].Rows[0]
	if ovsdb.ID(r["_uuid"]) != res[2].ID || ovsdb.ID(r["ports"]) != res[1].ID {
		t.Error(r)
	}
	if diff := cmp.Diff(map[string]string{"mark": "x"}, ovsdb.StringMap(r["external_ids"])); diff != "" {
		t.Error(diff)
	}
	if n, ok := ovsdb.Int(r["mcast_snooping_enable"]); ok || n != 0 {
		t.Error("a boolean read as a number")
	}
	id := must(t, c, ovsdb.Select("Interface").Columns("_uuid"))[0].Rows[0]["_uuid"]
	must(t, c, ovsdb.Update("Interface", row{"mtu_request": 9000, "statistics": []any{"map", []any{[]any{"rx_packets", 5}}}}, ovsdb.ByID(ovsdb.ID(id))))
	r = must(t, c, ovsdb.Select("Interface"))[0].Rows[0]
	if mtu, ok := ovsdb.Int(r["mtu_request"]); !ok || mtu != 9000 || ovsdb.IntMap(r["statistics"])["rx_packets"] != 5 {
		t.Error(r)
	}
	if _, ok := ovsdb.Int(r["ofport"]); ok {
		t.Error("a number in an empty set:", r["ofport"])
	}
}

func testMutate(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	set := func(m map[string]string) ovsdb.Mutation { return ovsdb.Mutator("other_config", "insert", ovsdb.Map(m)) }
	get := func() map[string]string {
		return ovsdb.StringMap(must(t, c, ovsdb.Select("Open_vSwitch").Columns("other_config"))[0].Rows[0]["other_config"])
	}
	must(t, c, ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{set(map[string]string{"a": "1", "b": "2", "c": "3"})}))
	res := must(t, c, ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{
		set(map[string]string{"a": "other"}), // insert does not replace (RFC 7047 section 5.1)
		ovsdb.Mutator("other_config", "delete", ovsdb.Set("b")),
		ovsdb.Mutator("other_config", "delete", ovsdb.Map(map[string]string{"c": "not 3"})),
		ovsdb.Mutator("next_cfg", "+=", 2),
	}))
	if diff := cmp.Diff(map[string]string{"a": "1", "c": "3"}, get()); diff != "" || res[0].Count != 1 {
		t.Error(diff, res)
	}
	n, _ := ovsdb.Int(must(t, c, ovsdb.Select("Open_vSwitch"))[0].Rows[0]["next_cfg"])
	if n != 2 {
		t.Error("next_cfg", n)
	}
}

func testAtomic(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	e := refused(t, c, append(addBridge("br0"), ovsdb.Insert("Nonsense", row{}))...)
	if e.Index != 4 || e.Op["table"] != "Nonsense" {
		t.Error(e)
	}
	if got := names(t, c, "Bridge"); len(got) > 0 {
		t.Error(got)
	}
	// An index is looked at when the transaction ends.
	must(t, c, addBridge("br0")...)
	if e := refused(t, c, addBridge("br0")...); e.Index != -1 || e.Code != "constraint violation" {
		t.Error(e)
	}
	if got := names(t, c, "Bridge"); len(got) != 1 {
		t.Error(got)
	}
}

func testGarbage(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	b := must(t, c, addBridge("br0")...)[2].ID
	port := must(t, c, ovsdb.Insert("Interface", row{"name": "p"}).Named("i"),
		ovsdb.Insert("Port", row{"name": "p", "interfaces": ovsdb.Set(ovsdb.NamedUUID("i"))}).Named("p"),
		ovsdb.Mutate("Bridge", []ovsdb.Mutation{ovsdb.Mutator("ports", "insert", ovsdb.Set(ovsdb.NamedUUID("p")))}, ovsdb.ByID(b)))[1].ID
	if got := names(t, c, "Interface"); !slices.Equal(got, []string{"br0", "p"}) {
		t.Error(got)
	}
	must(t, c, ovsdb.Insert("Interface", row{"name": "nobody's"})) // gone at once
	must(t, c, ovsdb.Mutate("Bridge", []ovsdb.Mutation{ovsdb.Mutator("ports", "delete", ovsdb.UUID(port))}, ovsdb.ByID(b)))
	if got := append(names(t, c, "Interface"), names(t, c, "Port")...); !slices.Equal(got, []string{"br0", "br0"}) {
		t.Error(got)
	}
	// A row that is referred to strongly cannot go.
	if e := refused(t, c, ovsdb.Delete("Bridge", ovsdb.ByID(b))); e.Index != -1 || e.Code != "referential integrity violation" {
		t.Error(e)
	}
	must(t, c, ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{ovsdb.Mutator("bridges", "delete", ovsdb.UUID(b))}))
	if got := append(names(t, c, "Interface"), append(names(t, c, "Port"), names(t, c, "Bridge")...)...); len(got) > 0 {
		t.Error(got)
	}
}

func testErrors(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	must(t, c, addBridge("br0")...)
	for _, x := range []struct {
		op    ovsdb.Op
		index int
		code  string // "": any
	}{
		{ovsdb.Insert("Bridge", row{"nonsense": 1}), 0, ""},
		{ovsdb.Select("Bridge", ovsdb.Where("nonsense", "==", 1)), 0, ""},
		{ovsdb.Select("Bridge").Columns("nonsense"), 0, ""},
		{ovsdb.Update("Bridge", row{"fail_mode": "nonsense"}), 0, "constraint violation"},
		{ovsdb.Update("Bridge", row{"fail_mode": 5}), 0, "syntax error"},
		{ovsdb.Update("Port", row{"tag": 4096}), 0, "constraint violation"},
		{ovsdb.Update("Bridge", row{"name": "new"}), 0, "constraint violation"},
		{ovsdb.Update("Port", row{"interfaces": ovsdb.Set[any]()}), 0, ""},
		{ovsdb.Insert("Port", row{"name": "p", "interfaces": ovsdb.NamedUUID("nobody")}), -1, "referential integrity violation"},
		{ovsdb.Insert("Open_vSwitch", row{}), -1, "constraint violation"},
		{ovsdb.Op{"op": "nonsense"}, 0, ""},
		{ovsdb.Op{"op": "abort"}, 0, "aborted"},
	} {
		e := refused(t, c, x.op)
		if e.Index != x.index || x.code != "" && e.Code != x.code {
			t.Errorf("%v: %#v", x.op, e)
		}
	}
	if _, err := c.Transact(t.Context(), "nonsense", ovsdb.Select("Bridge")); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
	if got := must(t, c, ovsdb.Comment("still here"), ovsdb.Select("Bridge")); len(got[1].Rows) != 1 {
		t.Error(got)
	}
}

func testConditions(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	must(t, c, addBridge("br0")...)
	must(t, c, addBridge("br1")...)
	must(t, c, ovsdb.Update("Bridge", row{"other_config": ovsdb.Map(map[string]string{"a": "1", "b": "2"})}, ovsdb.Where("name", "==", "br1")))
	for _, x := range []struct {
		where ovsdb.Cond
		want  int
	}{
		{ovsdb.Where("name", "!=", "br0"), 1},
		{ovsdb.Where("other_config", "includes", ovsdb.Map(map[string]string{"a": "1"})), 1},
		{ovsdb.Where("other_config", "includes", ovsdb.Map(map[string]string{"a": "2"})), 0},
		{ovsdb.Where("other_config", "excludes", ovsdb.Map(map[string]string{"a": "1"})), 1},
		{ovsdb.Where("name", "includes", "br0"), 1},
	} {
		if got := must(t, c, ovsdb.Select("Bridge", x.where))[0].Rows; len(got) != x.want {
			t.Errorf("%v: %d rows", x.where, len(got))
		}
	}
}

func testUpdate(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	must(t, c, addBridge("br0")...)
	res := must(t, c, ovsdb.Update("Bridge", row{"fail_mode": "secure", "protocols": ovsdb.Set("OpenFlow14", "OpenFlow10")}),
		ovsdb.Select("Bridge").Columns("fail_mode", "protocols"),
		ovsdb.Update("Bridge", row{"fail_mode": ovsdb.Optional("")}), ovsdb.Select("Bridge").Columns("fail_mode"))
	if r := res[1].Rows[0]; ovsdb.String(r["fail_mode"]) != "secure" || !slices.Equal(ovsdb.Strings(r["protocols"]), []string{"OpenFlow10", "OpenFlow14"}) {
		t.Error(r)
	}
	if r := res[3].Rows[0]; ovsdb.String(r["fail_mode"]) != "" || len(r) != 1 {
		t.Error(r)
	}
}

func testWait(t *testing.T, open func() *ovsdb.Client) {
	c, other := open(), open()
	is := func(cfg int, limit time.Duration) ovsdb.Op {
		return ovsdb.Wait("Open_vSwitch", limit, []string{"cur_cfg"}, "==", []row{{"cur_cfg": cfg}})
	}
	must(t, c, is(0, 0))
	if e := refused(t, c, is(7, 0)); e.Code != "timed out" || e.Index != 0 {
		t.Error(e)
	}
	if e := refused(t, c, is(7, 20*time.Millisecond)); e.Code != "timed out" {
		t.Error(e)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Transact(t.Context(), ovsdb.DB, is(7, time.Minute))
		done <- err
	}()
	must(t, c, ovsdb.Select("Open_vSwitch")) // a wait holds up nobody else
	must(t, other, ovsdb.Update("Open_vSwitch", row{"cur_cfg": 7}))
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// daemon sets cur_cfg whenever next_cfg has changed, as ovs-vswitchd does, until the test ends.
func daemon(t *testing.T, c *ovsdb.Client) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var next int64
			err := c.Watch(ctx, ovsdb.DB, ovsdb.DB, []string{"next_cfg", "cur_cfg"}, func(rows map[string]row) bool {
				for _, r := range rows {
					cur, _ := ovsdb.Int(r["cur_cfg"])
					next, _ = ovsdb.Int(r["next_cfg"])
					return next > cur
				}
				return false
			})
			if err == nil {
				_, err = c.Transact(ctx, ovsdb.DB, ovsdb.Update(ovsdb.DB, row{"cur_cfg": next}))
			}
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

func testApply(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	// Nobody takes it over: the change is in the database, and the error says that it was not applied.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	res, err := c.Apply(ctx, addBridge("br0")...)
	if !errors.Is(err, ovsdb.ErrNotApplied) || !errors.Is(err, context.DeadlineExceeded) || len(res) != 4 {
		t.Fatal(res, err)
	}
	if got := names(t, c, "Bridge"); len(got) != 1 {
		t.Error(got)
	}
	daemon(t, open())
	for range 3 {
		if err := c.WaitApplied(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Apply(t.Context(), ovsdb.Insert("Nonsense", row{})); err == nil {
		t.Error("nonsense was applied")
	}
}

func testWatch(t *testing.T, open func() *ovsdb.Client) {
	c, other := open(), open()
	seen := make(chan int, 100)
	done := make(chan error, 1)
	go func() {
		done <- c.Watch(t.Context(), ovsdb.DB, "Bridge", []string{"name"}, func(rows map[string]row) bool {
			seen <- len(rows)
			for _, r := range rows {
				if ovsdb.String(r["name"]) == "br1" {
					return true
				}
			}
			return false
		})
	}()
	if n := <-seen; n != 0 {
		t.Error("at first there are", n)
	}
	b := must(t, other, addBridge("br0")...)[2].ID
	if n := <-seen; n != 1 {
		t.Error("then there are", n)
	}
	must(t, other, ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{ovsdb.Mutator("bridges", "delete", ovsdb.UUID(b))}))
	if n := <-seen; n != 0 {
		t.Error("then there are", n)
	}
	must(t, other, addBridge("br1")...)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := c.Watch(t.Context(), ovsdb.DB, "Nonsense", nil, nil); err == nil {
		t.Error("nonsense was watched")
	}
}

func testCancel(t *testing.T, open func() *ovsdb.Client) {
	c := open()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() {
		_, err := c.Transact(ctx, ovsdb.DB, ovsdb.Wait("Open_vSwitch", -1, []string{"cur_cfg"}, "==", []row{{"cur_cfg": 99}}))
		done <- err
	}()
	go func() {
		done <- c.Watch(ctx, ovsdb.DB, "Bridge", []string{"name"}, func(map[string]row) bool { return false })
	}()
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	must(t, c, ovsdb.Select("Bridge")) // the connection is still good
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Transact(t.Context(), ovsdb.DB, ovsdb.Select("Bridge")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestDialNoServer(t *testing.T) {
	a, b := net.Pipe()
	go func() { _, _ = b.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")) }()
	if _, err := ovsdb.Dial(t.Context(), a); err == nil || !strings.Contains(err.Error(), "greet") {
		t.Fatal(err)
	}
}

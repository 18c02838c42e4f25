package host

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/labhost"
)

// Machines are what hosts showed when they were recorded, in testdata/machines/NAME.txtar: their files, and what the scripts for facts and examinations printed. What is no fact of the
// hardware or the system (command lines, mounts) was taken out. Record one anew after a change of what is read: PLUMB_REAL=1 go test -run TestRealFacts -record vm.
var record = flag.String("record", "", "write what the host shows to testdata/machines/`NAME`.txtar")

// recorded is a machine as the functions of facts and examinations see it.
type recorded struct {
	files       fileset
	told, asked string // by the scripts for facts and for examinations
	address     string // where our connection comes in
}

func load(t *testing.T, name string) recorded {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "machines", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	r := recorded{files: fileset{}}
	for _, f := range ar.Files {
		switch f.Name {
		case "facts":
			r.told = string(f.Data)
		case "examination":
			r.asked = string(f.Data)
		case "address":
			r.address = strings.TrimSpace(string(f.Data))
		default:
			r.files[f.Name] = f.Data
		}
	}
	return r
}

// save records a machine.
func save(t *testing.T, conn providers.Conn, name string) {
	t.Helper()
	files, err := conn.ReadFiles(t.Context(), append(factFiles(), doctorFiles()...)...)
	if err != nil {
		t.Log(err) // what may not be read is not known of it
	}
	ar := &txtar.Archive{Comment: fmt.Appendf(nil, "Recorded by -record %s. See machines_test.go.\n", name)}
	scripts := map[string][]string{"facts": append([]string{factsScript, "plumb-facts"}, factUnits()...), "examination": {doctorScript, "plumb-doctor"}}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		res, err := conn.Run(t.Context(), providers.Cmd{Args: append([]string{"sh", "-c"}, scripts[name]...)})
		if err != nil {
			t.Fatal(err)
		}
		ar.Files = append(ar.Files, txtar.File{Name: name, Data: res.Stdout})
	}
	if m, ok := conn.(providers.Managed); ok {
		ar.Files = append(ar.Files, txtar.File{Name: "address", Data: []byte(m.ManagementAddress())})
	}
	lines := func(data []byte, keep func([]byte) bool) []byte {
		return bytes.Join(slices.DeleteFunc(bytes.SplitAfter(data, []byte("\n")), func(l []byte) bool { return !keep(l) }), nil)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		switch {
		case name == "/proc/cmdline":
			data = []byte("console=ttyS0 quiet\n")
		case name == "/proc/mounts":
			data = lines(data, func(l []byte) bool { return bytes.Contains(l, []byte(" hugetlbfs ")) })
		case name == "/proc/cpuinfo": // the first CPU
			first, _, _ := bytes.Cut(data, []byte("\n\n"))
			data = append(first, '\n')
		case name == "/proc/self/status" || strings.HasSuffix(name, "/meminfo"):
			data = lines(data, func(l []byte) bool {
				return bytes.Contains(l, []byte("MemTotal")) || bytes.HasPrefix(l, []byte("Uid"))
			})
		case bytes.IndexByte(data, 0) >= 0: // not text
			continue
		}
		ar.Files = append(ar.Files, txtar.File{Name: name, Data: data})
	}
	if err := os.WriteFile(filepath.Join("testdata", "machines", name+".txtar"), txtar.Format(ar), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRealFacts(t *testing.T) {
	real(t)
	factsOf(t, transport.NewLocal("local"))
}

func TestLabFacts(t *testing.T) {
	f := factsOf(t, labhost.Open(t))
	var carries []string
	for _, n := range f.NICs {
		if busy(&n) != "" {
			carries = append(carries, n.PCI)
		}
	}
	if len(carries) != 1 || f.Versions["ovs"] == "" || f.Versions["driverctl"] == "" || f.Services["tuned"] == "" || len(f.Nodes) != 2 {
		t.Errorf("NICs that carry our connection: %q; %+v", carries, f)
	}
}

// factsOf gathers facts and looks whether what every machine has is in them.
func factsOf(t *testing.T, conn providers.Conn) *providers.Facts {
	t.Helper()
	f, err := Gather(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.CPUs) == 0 || !f.CPUs[0].Online || len(f.Nodes) == 0 || f.Nodes[0].MemoryBytes == 0 || !f.Root || f.BootID == "" || f.Kernel == "" || len(f.CPUFlags) == 0 {
		t.Errorf("facts are missing: %+v", f)
	}
	if errs := f.Value.Type().TestConformance(factsSchema().Block.ImpliedType()); len(errs) > 0 {
		t.Errorf("the value is not of the schema's type: %v", errs)
	}
	if *record != "" {
		save(t, conn, *record)
	}
	return f
}

// TestMachines compares what is known of recorded and built machines, and what an examination finds on them, with golden files.
func TestMachines(t *testing.T) {
	for name, get := range machines() {
		t.Run(name, func(t *testing.T) {
			r := get(t)
			f, err := parseFacts(r.files, r.told, r.address)
			if err != nil {
				t.Fatal(err)
			}
			if errs := f.Value.Type().TestConformance(factsSchema().Block.ImpliedType()); len(errs) > 0 {
				t.Fatalf("the value is not of the schema's type: %v", errs)
			}
			p := &patient{f: f, files: r.files}
			if err := p.tell(r.asked); err != nil {
				t.Fatal(err)
			}
			value, err := ctyjson.Marshal(f.Value, f.Value.Type())
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".facts", pretty(t, value))
			golden(t, name+".examination", findings(p.examine()))
		})
	}
}

// findings are printed without breaking lines.
func findings(list []providers.Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Level, f.Subject, f.Found)
		for _, s := range []string{f.Why, f.Do, strings.TrimSpace(f.Block)} {
			if s != "" {
				b.WriteString("\t" + strings.ReplaceAll(s, "\n", "\n\t") + "\n")
			}
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "machines", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update writes it anew:\n%s", file, diff)
	}
}

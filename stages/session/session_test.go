package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/state"
)

// kind is a resource type that is only described.
type kind struct {
	providers.Resource
	schema *schema.Resource
}

func (k kind) Schema() *schema.Resource { return k.schema }

func testSet() providers.Set {
	of := func(typ string, after ...string) kind {
		return kind{schema: &schema.Resource{Type: typ, After: after, Block: schema.Block{Attributes: map[string]*schema.Attribute{"name": {Type: cty.String, Optional: true}}}}}
	}
	return providers.Set{
		Resources: []providers.Resource{of("t_switch"), of("t_bridge", "t_switch"), of("t_flow", "t_bridge", "t_switch")},
		HostSchema: &schema.Block{Attributes: map[string]*schema.Attribute{
			"address": {Type: cty.String, Optional: true}, "max_parallel": {Type: cty.Number, Optional: true},
		}},
		OpenHost: func(context.Context, string, cty.Value, providers.Hosts) (providers.Host, error) {
			return nil, errors.New("no host here")
		},
	}
}

// open opens a session on files.
func open(t *testing.T, files map[string]string) *Session {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, diags := Open(Env{Dir: dir, Version: "1.0.0", Now: time.Now, Providers: testSet()}, nil, NotEmpty)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return s
}

func TestPublicSourcesHideSecrets(t *testing.T) {
	s := open(t, map[string]string{
		"main.plumb.hcl": `
variable "password" {
  sensitive = true
  default   = "a<b>&\"$${c}"
}
variable "pin" {
  sensitive = true
  default   = 4711
}
variable "list" {
  sensitive = true
  default   = ["first secret", "second secret"]
}
variable "port" {
  default = 8080
}
locals {
  again = "x first secret y"
}
module "m" {
  source = "./m"
}
`,
		"m/main.plumb.hcl": `
variable "inner" {
  sensitive = true
  default   = <<EOT
inner secret
EOT
}
`,
		"more.plumb.json": `{"variable":{"js":{"sensitive":true,"default":"json<secret>"}}}`,
	})
	got := s.publicSources()
	want := map[string][]byte{
		"main.plumb.hcl": []byte(`
variable "password" {
  sensitive = true
  default   = "(sensitive value)"
}
variable "pin" {
  sensitive = true
  default   = "(sensitive value)"
}
variable "list" {
  sensitive = true
  default   = "(sensitive value)"
}
variable "port" {
  default = 8080
}
locals {
  again = "x (sensitive value) y"
}
module "m" {
  source = "./m"
}
`),
		"m/main.plumb.hcl": []byte("\nvariable \"inner\" {\n  sensitive = true\n  default   = \"(sensitive value)\"\n}\n"),
		"more.plumb.json":  []byte(`{"variable":{"js":{"sensitive":true,"default":"(sensitive value)"}}}`),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, src := range s.Config.Sources {
		if strings.HasSuffix(name, "m/main.plumb.hcl") && !strings.Contains(string(src), "inner secret") {
			t.Error("the configuration itself was changed")
		}
	}
}

func TestPerHost(t *testing.T) {
	s := open(t, map[string]string{"main.plumb.hcl": `
variable "n" {
  default = 3
}
host "one" {
  max_parallel = 1
}
host "var" {
  max_parallel = var.n
}
host "any" {
}
`})
	for name, want := range map[string]int{"one": 1, "var": 3, "any": 0, "none": 0} {
		if got := s.perHost(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := (&Session{}).perHost("x"); got != 0 {
		t.Errorf("without a configuration: %d", got)
	}
}

func TestGraph(t *testing.T) {
	s := open(t, map[string]string{"main.plumb.hcl": `
host "dut" {
}
resource "t_switch" "s" {
  host = host.dut
}
resource "t_bridge" "b" {
  host = host.dut
}
resource "t_flow" "f" {
  host = host.dut
  name = t_bridge.b.name
}
resource "t_switch" "late" {
  host = host.dut
  name = t_flow.f.name
}
`})
	g, diags := s.Graph()
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got := map[string]string{}
	for _, e := range g.Edges() {
		got[e.From+" -> "+e.To] = e.Reason
	}
	want := map[string]string{ // the order by type gives way to references, and says nothing that they say already
		"t_flow.f -> t_bridge.b":    "reference",
		"t_switch.late -> t_flow.f": "reference",
		"t_bridge.b -> t_switch.s":  "host order",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestChoose(t *testing.T) {
	a := &eval.Benchmark{Addr: addrs.Object{Name: "alpha"}}
	b := &eval.Benchmark{Addr: addrs.Object{Name: "beta"}}
	all := []*eval.Benchmark{a, b}
	for _, tc := range []struct {
		names []string
		want  []*eval.Benchmark
		err   string
	}{
		{nil, all, ""},
		{[]string{"beta"}, []*eval.Benchmark{b}, ""},
		{[]string{"beta", "alpha", "beta"}, []*eval.Benchmark{b, a}, ""},
		{[]string{a.Addr.String()}, []*eval.Benchmark{a}, ""},
		{[]string{"alpah"}, nil, `there is no benchmark "alpah". Did you mean "alpha"?`},
	} {
		got, err := choose(all, tc.names)
		if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%q: %v, want %s", tc.names, err, tc.err)
		}
		if len(got) != len(tc.want) {
			t.Errorf("%q: %d benchmarks", tc.names, len(got))
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%q: at %d %s", tc.names, i, got[i].Addr.Name)
			}
		}
	}
}

func TestAppliedLeavesOutWhatWasReplaced(t *testing.T) {
	s := &Session{Catalog: Catalog(testSet())}
	at := addrs.Resource{Type: "t_switch", Name: "s"}.Instance(addrs.Key{})
	values, list, err := s.applied(&state.State{Instances: []*state.Instance{
		{Addr: at, Host: "dut", Attributes: []byte(`{"name":"new"}`)}, {Addr: at, Host: "dut", Deposed: true, Attributes: []byte(`{"name":"old"}`)},
	}})
	if err != nil || len(list) != 1 || values[at].GetAttr("name").AsString() != "new" {
		t.Errorf("%v %v %v", values, list, err)
	}
	at.Resource.Type = "t_none"
	if _, _, err := s.applied(&state.State{Instances: []*state.Instance{{Addr: at, Attributes: []byte(`{}`)}}}); err == nil || !strings.Contains(err.Error(), `no resource type "t_none"`) {
		t.Error(err)
	}
}

func TestOpenWithoutFiles(t *testing.T) {
	env := Env{Dir: t.TempDir(), Version: "1.0.0", Now: time.Now, Providers: testSet()}
	s, diags := Open(env, nil, MayBeEmpty)
	if diags.HasErrors() || s.Config != nil || s.Store == nil || s.HasBenchmarks() {
		t.Error(s, diags)
	}
	if _, diags := Open(env, nil, NotEmpty); !diags.HasErrors() {
		t.Error("no configuration was taken for one")
	}
}

func TestSnapshotFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snap.json")
	want := map[string][]string{"dut": {"a: <1>", "b: 2"}}
	if err := WriteSnapshot(file, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSnapshot(file)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSnapshot(file); err == nil || !strings.Contains(err.Error(), "is not a snapshot") {
		t.Error(err)
	}
}

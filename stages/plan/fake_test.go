package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// world is what the fake types find: by address the object as it is, or null for gone. An address that is not there is as last recorded.
type world struct {
	mu          sync.Mutex
	objects     map[string]cty.Value
	errs        map[string]error
	read        []string
	unreachable map[string]bool
	cut         map[string]bool // unreachable in a way that does not concern the others
	free        uint64          // of 1024 pages of 2 MB on node 0
}

// fakeHost has four cores on one node.
type fakeHost struct {
	providers.Host
	name string
	w    *world
}

func (h *fakeHost) Name() string           { return h.name }
func (h *fakeHost) Close() error           { return nil }
func (h *fakeHost) Reads() providers.Reads { return providers.Reads{Commands: 1} }
func (h *fakeHost) Facts(context.Context) (*providers.Facts, error) {
	f := &providers.Facts{Hostname: h.name, Value: cty.ObjectVal(map[string]cty.Value{"cores": cty.NumberIntVal(4)})}
	for i := range 4 {
		f.CPUs = append(f.CPUs, providers.CPU{ID: i, Online: true})
	}
	f.Nodes = []providers.Node{{ID: 0, Hugepages: []providers.Hugepages{{Size: 2 << 20, Total: 1024, Free: h.w.free}}}}
	return f, nil
}

func (w *world) open(_ context.Context, name string, _ cty.Value, _ providers.Hosts) (providers.Host, error) {
	if w.unreachable[name] {
		return nil, errors.New("connect to 192.0.2.10: connection refused")
	}
	if w.cut[name] {
		return nil, fmt.Errorf("192.0.2.10: %w: no route to host", providers.ErrUnreachable)
	}
	return &fakeHost{name: name, w: w}, nil
}

// fakeType is a resource type made of a schema; Read looks into the world.
type fakeType struct {
	w   *world
	sch *schema.Resource
}

func (t *fakeType) Schema() *schema.Resource { return t.sch }

func (t *fakeType) Read(_ context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.read = append(t.w.read, req.Mark.Address)
	if err := t.w.errs[req.Mark.Address]; err != nil {
		return providers.ReadResult{}, err
	}
	if v, ok := t.w.objects[req.Mark.Address]; ok {
		if v.IsNull() {
			v = cty.NullVal(t.sch.Block.ImpliedType())
		}
		return providers.ReadResult{Current: v}, nil
	}
	return providers.ReadResult{Current: req.Prior}, nil
}

func (t *fakeType) Apply(context.Context, providers.ApplyRequest) (providers.ApplyResult, error) {
	return providers.ApplyResult{}, errors.New("planning must not apply")
}

type attrs = map[string]*schema.Attribute

func lowercase(v cty.Value) (cty.Value, error) {
	return cty.StringVal(strings.ToLower(v.AsString())), nil
}

// store is hostless, like plumb_data.
func store(w *world) providers.Resource {
	return &fakeType{w, &schema.Resource{Type: "store", Hostless: true, Block: schema.Block{Attributes: attrs{
		"input":   {Type: cty.DynamicPseudoType, Optional: true},
		"secret":  {Type: cty.String, Optional: true, Sensitive: true},
		"trigger": {Type: cty.String, Optional: true, Cost: schema.Replace},
		"id":      {Type: cty.String, Computed: true},
		"output":  {Type: cty.DynamicPseudoType, Computed: true, Volatile: true},
	}}}}
}

// sw is a setting with a planner and claims, like ovs_switch.
type sw struct{ fakeType }

func newSwitch(w *world) providers.Resource {
	return &sw{fakeType{w, &schema.Resource{Type: "sw", Setting: true, After: []string{"pages"}, Block: schema.Block{
		Attributes: attrs{
			"pmd":        {Type: cty.List(cty.Number), Optional: true},
			"lcore":      {Type: cty.Number, Optional: true, Cost: schema.ServiceRestart},
			"socket_mem": {Type: cty.Number, Optional: true, Cost: schema.ServiceRestart},
			"extra":      {Type: cty.Map(cty.String), Optional: true},
			"shared":     {Type: cty.Bool, Optional: true},
			"version":    {Type: cty.String, Computed: true},
		},
	}}}}
}

func (t *sw) Plan(_ context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	r := providers.PlanResult{Planned: req.Proposed}
	if v := req.Desired.GetAttr("extra"); v.IsKnown() && !v.IsNull() {
		switch m := v.AsValueMap(); {
		case m["bug"] != cty.NilVal:
			planned := req.Proposed.AsValueMap()
			planned["lcore"] = cty.NumberIntVal(99)
			r.Planned = cty.ObjectVal(planned)
		case m["foreign"] != cty.NilVal:
			return r, fmt.Errorf("switch %s %w", m["foreign"].AsString(), providers.ErrForeign)
		case m["problem"] != cty.NilVal:
			r.Problems = []providers.Problem{{Host: req.Host.Name(), Summary: "No switch is installed", Detail: "There is no switchd on this host: install it."}}
		}
	}
	if !req.Prior.IsNull() && !req.Prior.GetAttr("lcore").RawEquals(req.Proposed.GetAttr("lcore")) {
		r.Effects = []string{"restarts switchd on " + req.Host.Name()}
	}
	return r, nil
}

func path(name string) cty.Path { return cty.GetAttrPath(name) }

func number(v cty.Value) (int, bool) {
	if !v.IsKnown() || v.IsNull() {
		return 0, false
	}
	n, _ := v.AsBigFloat().Int64()
	return int(n), true
}

func (t *sw) Claims(_ context.Context, _ providers.Host, v cty.Value) (providers.Claims, error) {
	var c providers.Claims
	if l := v.GetAttr("pmd"); l.IsWhollyKnown() && !l.IsNull() {
		var cores []int
		for _, e := range l.AsValueSlice() {
			n, _ := number(e)
			cores = append(cores, n)
		}
		c.Cores = append(c.Cores, providers.CoreClaim{Cores: cores, Use: "PMD", Polling: true, Shared: v.GetAttr("shared").RawEquals(cty.True), Path: path("pmd")})
	}
	if n, ok := number(v.GetAttr("lcore")); ok {
		c.Cores = append(c.Cores, providers.CoreClaim{Cores: []int{n}, Use: "lcore", Path: path("lcore")})
	}
	if n, ok := number(v.GetAttr("socket_mem")); ok {
		c.Hugepages = append(c.Hugepages, providers.HugepageClaim{Size: 2 << 20, Node: 0, Pages: uint64(n / 2), What: fmt.Sprintf("socket_mem %d MB", n), Path: path("socket_mem")})
	}
	return c, nil
}

// pages is a setting that grants hugepages.
type pagesType struct{ fakeType }

func newPages(w *world) providers.Resource {
	return &pagesType{fakeType{w, &schema.Resource{Type: "pages", Setting: true, Block: schema.Block{Attributes: attrs{"total": {Type: cty.Number, Optional: true}}}}}}
}

func (t *pagesType) Claims(_ context.Context, _ providers.Host, v cty.Value) (providers.Claims, error) {
	n, _ := number(v.GetAttr("total"))
	return providers.Claims{Grants: []providers.HugepageClaim{{Size: 2 << 20, Node: 0, Pages: uint64(n), Path: path("total")}}}, nil
}

// port is an object with nested blocks, like ovs_port.
type port struct{ fakeType }

func newPort(w *world) providers.Resource {
	return &port{fakeType{w, &schema.Resource{Type: "port", After: []string{"sw"}, Block: schema.Block{
		Attributes: attrs{
			"name":   {Type: cty.String, Required: true, Cost: schema.Replace},
			"on":     {Type: cty.String, Optional: true},
			"mtu":    {Type: cty.Number, Optional: true, Computed: true, Cost: schema.PortReset},
			"mac":    {Type: cty.String, Optional: true, Computed: true, Canonical: lowercase},
			"ofport": {Type: cty.Number, Optional: true},
			"socket": {Type: cty.String, Optional: true},
			"queues": {Type: cty.Number, Optional: true},
			"server": {Type: cty.Bool, Optional: true},
			"vnf":    {Type: cty.Bool, Optional: true},
			"core":   {Type: cty.Number, Optional: true},
			"memory": {Type: cty.Number, Optional: true},
			"id":     {Type: cty.String, Computed: true},
		},
		Blocks: map[string]*schema.NestedBlock{
			"rule": {Nesting: schema.List, Block: schema.Block{Attributes: attrs{
				"prio": {Type: cty.Number, Required: true, Cost: schema.ServiceRestart}, "note": {Type: cty.String, Optional: true},
			}}},
			"qos": {Nesting: schema.Single, Block: schema.Block{Attributes: attrs{"rate": {Type: cty.Number, Optional: true, Cost: schema.PortReset}}}},
		},
	}}}}
}

func (t *port) Claims(_ context.Context, _ providers.Host, v cty.Value) (providers.Claims, error) {
	var c providers.Claims
	name := v.GetAttr("name")
	if !name.IsKnown() {
		return c, nil
	}
	c.Provides = []providers.Named{{Kind: "port", Name: name.AsString()}}
	if n, ok := number(v.GetAttr("ofport")); ok {
		c.Unique = []providers.Unique{{Scope: "ofport", Value: fmt.Sprint(n), Path: path("ofport")}}
	}
	if s := v.GetAttr("socket"); s.IsKnown() && !s.IsNull() {
		q, _ := number(v.GetAttr("queues"))
		c.Sockets = []providers.SocketEnd{{Socket: s.AsString(), Server: v.GetAttr("server").RawEquals(cty.True), Switch: !v.GetAttr("vnf").RawEquals(cty.True), Queues: q, Path: path("socket")}}
	}
	if n, ok := number(v.GetAttr("core")); ok {
		c.Cores = []providers.CoreClaim{{Cores: []int{n}, Use: "forwarding", Polling: true, Path: path("core")}}
	}
	if n, ok := number(v.GetAttr("memory")); ok {
		c.Hugepages = []providers.HugepageClaim{{Size: 2 << 20, Node: 0, Pages: uint64(n / 2), What: fmt.Sprintf("memory %d MB", n), Path: path("memory")}}
	}
	return c, nil
}

// flows lose their effect when a switch restarts.
type flows struct{ fakeType }

func newFlows(w *world) providers.Resource {
	return &flows{fakeType{w, &schema.Resource{Type: "flows", LostOn: []schema.Loss{{Type: "sw", Cost: schema.ServiceRestart, Why: "a restart of switchd loses flows"}},
		Block: schema.Block{Attributes: attrs{
			"ports": {Type: cty.List(cty.String), Optional: true},
			"hash":  {Type: cty.String, Computed: true, Volatile: true},
		}}}}}
}

func (t *flows) Claims(_ context.Context, _ providers.Host, v cty.Value) (providers.Claims, error) {
	var c providers.Claims
	if l := v.GetAttr("ports"); l.IsWhollyKnown() && !l.IsNull() {
		for i, e := range l.AsValueSlice() {
			c.Needs = append(c.Needs, providers.Named{Kind: "port", Name: e.AsString(), Path: path("ports").IndexInt(i)})
		}
	}
	return c, nil
}

// cable and plug are like a NIC's driver and a port.
func newCable(w *world) providers.Resource {
	return &fakeType{w, &schema.Resource{Type: "cable", Setting: true, Block: schema.Block{Attributes: attrs{
		"kind": {Type: cty.String, Optional: true, Cost: schema.PortReset}, "note": {Type: cty.String, Optional: true}, "id": {Type: cty.String, Computed: true},
	}}}}
}

func newPlug(w *world) providers.Resource {
	return &fakeType{w, &schema.Resource{Type: "plug", LostOn: []schema.Loss{{Type: "cable", Cost: schema.PortReset, Release: true, Why: "a cable cannot be exchanged while a plug sits on it"}},
		Block: schema.Block{Attributes: attrs{"name": {Type: cty.String, Required: true, Cost: schema.Replace}, "cable": {Type: cty.String, Optional: true}}}}}
}

// strand and clip are like a virtual function's driver and a port on it: the function is made anew when the number of functions changes.
func newStrand(w *world) providers.Resource {
	return &fakeType{w, &schema.Resource{Type: "strand", Setting: true, LostOn: []schema.Loss{{Type: "cable", Cost: schema.PortReset, Why: "a cable brings its own strands"}},
		Block: schema.Block{Attributes: attrs{"cable": {Type: cty.String, Optional: true}, "id": {Type: cty.String, Computed: true}}}}}
}

func newClip(w *world) providers.Resource {
	return &fakeType{w, &schema.Resource{Type: "clip", LostOn: []schema.Loss{{Type: "strand", Cost: schema.PortReset, Release: true, Why: "a strand cannot be exchanged while a clip sits on it"}},
		Block: schema.Block{Attributes: attrs{"strand": {Type: cty.String, Optional: true}}}}}
}

// mode has an argument whose change takes a reboot.
func newMode(w *world) providers.Resource {
	return &fakeType{w, &schema.Resource{Type: "mode", Setting: true, Survives: true, Block: schema.Block{Attributes: attrs{"kind": {Type: cty.String, Required: true, Cost: schema.HostReboot}}}}}
}

// boot is like host_kernel_args: it takes effect with a reboot.
type boot struct{ fakeType }

func newBoot(w *world) providers.Resource {
	return &boot{fakeType{w, &schema.Resource{Type: "boot", Setting: true, Survives: true, Block: schema.Block{Attributes: attrs{
		"args": {Type: cty.String, Optional: true}, "active": {Type: cty.Bool, Computed: true, Cost: schema.HostReboot},
	}}}}}
}

func (t *boot) Plan(_ context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	planned := req.Proposed.AsValueMap()
	planned["active"] = cty.True
	r := providers.PlanResult{Planned: cty.ObjectVal(planned)}
	if req.Prior.IsNull() || !req.Prior.GetAttr("active").RawEquals(cty.True) || !req.Prior.GetAttr("args").RawEquals(req.Proposed.GetAttr("args")) {
		r.Cost = schema.HostReboot
	}
	return r, nil
}

func (t *boot) Removal(context.Context, providers.RemovalRequest) (providers.RemovalResult, error) {
	return providers.RemovalResult{Cost: schema.HostReboot}, nil
}

// info is a data source that repeats its query.
type info struct{ w *world }

func (info) Schema() *schema.Resource {
	return &schema.Resource{Type: "info", Hostless: true, Block: schema.Block{Attributes: attrs{
		"query": {Type: cty.String, Required: true}, "answer": {Type: cty.String, Computed: true},
	}}}
}

func (d info) Read(_ context.Context, _ providers.Host, v cty.Value) (cty.Value, error) {
	m := v.AsValueMap()
	m["answer"] = cty.StringVal("answer to " + m["query"].AsString())
	return cty.ObjectVal(m), nil
}

// gen is a generator that takes a core and memory.
type gen struct{ providers.GeneratorType }

func (gen) Schema() *schema.Generator {
	return &schema.Generator{Type: "gen", Block: schema.Block{Attributes: attrs{
		"core": {Type: cty.Number, Optional: true}, "memory": {Type: cty.Number, Optional: true}, "socket": {Type: cty.String, Optional: true},
	}}}
}

func (gen) Claims(_ context.Context, _ providers.Host, v cty.Value) (providers.Claims, error) {
	var c providers.Claims
	if n, ok := number(v.GetAttr("core")); ok {
		c.Cores = []providers.CoreClaim{{Cores: []int{n}, Use: "generator", Polling: true, Path: path("core")}}
	}
	if n, ok := number(v.GetAttr("memory")); ok {
		c.Hugepages = []providers.HugepageClaim{{Size: 2 << 20, Node: 0, Pages: uint64(n / 2), What: fmt.Sprintf("memory %d MB", n), Path: path("memory")}}
	}
	if s := v.GetAttr("socket"); s.IsKnown() && !s.IsNull() {
		c.Sockets = []providers.SocketEnd{{Socket: s.AsString(), Server: true, Path: path("socket")}}
	}
	return c, nil
}

func fakeSet(w *world) *providers.Set {
	return &providers.Set{
		Resources:  []providers.Resource{store(w), newSwitch(w), newPages(w), newPort(w), newFlows(w), newCable(w), newPlug(w), newBoot(w), newStrand(w), newClip(w), newMode(w)},
		Data:       []providers.DataSource{info{w}},
		Generators: []providers.GeneratorType{gen{}},
		HostSchema: &schema.Block{Attributes: attrs{"address": {Type: cty.String, Optional: true}, "reboot": {Type: cty.Bool, Optional: true}, "jump": {Type: cty.String, Optional: true, Reference: schema.RefOtherHost}}},
		OpenHost:   w.open,
		Reboot: func(context.Context, providers.Host, func(string)) error {
			return errors.New("planning must not reboot")
		},
		RebootAllowed: func(config cty.Value) (bool, string) {
			return config.GetAttr("reboot").RawEquals(cty.True), "its host block does not allow it"
		},
	}
}

func fakeCatalog(set *providers.Set) *schema.Catalog {
	c := &schema.Catalog{
		Resources: map[string]*schema.Resource{}, Data: map[string]*schema.Resource{}, Generators: map[string]*schema.Generator{},
		Host: set.HostSchema, Benchmark: &schema.Block{}, Methods: map[string]*schema.Block{"continuous": {}},
	}
	for _, r := range set.Resources {
		c.Resources[r.Schema().Type] = r.Schema()
	}
	for _, d := range set.Data {
		c.Data[d.Schema().Type] = d.Schema()
	}
	for _, g := range set.Generators {
		c.Generators[g.Schema().Type] = g.Schema()
	}
	return c
}

// fill gives every unknown part of a planned object a value, as apply would.
func fill(raw json.RawMessage, unknown []Path, addr string, dynamic map[string]bool) json.RawMessage {
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(err)
	}
	for _, p := range unknown {
		name := p[0] // the fake types have nothing unknown below
		var made any = name + " of " + addr
		if name == "mtu" {
			made = 1500
		}
		if dynamic[name] {
			made = map[string]any{"value": made, "type": "string"}
		}
		v[name] = made
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

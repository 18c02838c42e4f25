package network

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/pause"
)

// namespaceType is net_namespace.
type namespaceType struct{}

var (
	_ providers.Resource = namespaceType{}
	_ providers.Planner  = namespaceType{}
	_ providers.Claimer  = namespaceType{}
)

const (
	spaceKind = "network namespace"
	// leaveLimit is how long a namespace that is to go waits for processes in it, which may be on their way out.
	leaveLimit = 10 * time.Second
)

func (namespaceType) Schema() *schema.Resource {
	return &schema.Resource{
		Type:        "net_namespace",
		Description: "A network namespace with a name (ip-netns(8)). It is not removed while processes are in it; what virtual links are in it by then go with it, and NICs go back to the host's own namespace.",
		After:       []string{"host_package", "host_module"},
		Example: `resource "net_namespace" "client" {
  name = "client"
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"name":     {Type: cty.String, Required: true, Cost: schema.Replace, Validate: spaceName, Description: "Name of the namespace: 1 to 100 letters, digits, _, . or -."},
			"loopback": {Type: cty.Bool, Optional: true, Default: cty.True, Description: "Whether its loopback interface is up, with 127.0.0.1 and ::1. Without it, nothing in the namespace reaches its own addresses."},
			"path":     {Type: cty.String, Computed: true, Description: "The file that stands for the namespace, as nsenter(1) and container runtimes take it: /run/netns/NAME."},
		}},
	}
}

func (t namespaceType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	return readFrom(ctx, t, req)
}

func (t namespaceType) current(w *world, prior cty.Value, m providers.Mark) cty.Value {
	s := w.spaces[attr.Text(prior, "name")]
	if s == nil || s.alias() != aliasOf(m) {
		return cty.NullVal(t.Schema().Block.ImpliedType())
	}
	out := prior.AsValueMap()
	lo := s.links["lo"]
	out["loopback"] = cty.BoolVal(lo != nil && lo.up())
	out["path"] = cty.StringVal("/run/netns/" + s.name)
	return cty.ObjectVal(out)
}

func (namespaceType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	name := attr.Text(req.Desired, "name")
	if name == "" {
		return res, nil
	}
	out := req.Proposed.AsValueMap()
	out["path"] = cty.StringVal("/run/netns/" + name)
	res.Planned = cty.ObjectVal(out)
	if req.Host == nil {
		return res, nil
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return res, err
	}
	return res, w.foreignSpace(name, req.Host.Name(), req.Mark)
}

func (w *world) foreignSpace(name, host string, m providers.Mark) error {
	if s := w.spaces[name]; s != nil && s.alias() != aliasOf(m) {
		return foreign("the network namespace "+name, host, s.alias(), "ip netns del "+name)
	}
	return nil
}

func (namespaceType) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	name := attr.Text(planned, "name")
	if name == "" {
		return providers.Claims{}, nil
	}
	at := cty.GetAttrPath("name")
	return providers.Claims{Unique: []providers.Unique{{Scope: spaceKind, Value: name, Path: at}}, Provides: []providers.Named{{Kind: spaceKind, Name: name, Path: at}}}, nil
}

func (t namespaceType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	w, err := s.fresh(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, s.removeSpace(ctx, w, attr.Text(req.Prior, "name"), req)
	}
	name := attr.Text(req.Planned, "name")
	if err := w.foreignSpace(name, req.Host.Name(), req.Mark); err != nil {
		return providers.ApplyResult{}, err
	}
	var c steps
	have := w.spaces[name]
	if have == nil {
		c.namespace("netns-add", name, aliasOf(req.Mark))
	}
	up := attr.Truth(req.Planned, "loopback", true)
	if have == nil && up || have != nil && (have.links["lo"] == nil || have.links["lo"].up() != up) {
		c.ip(name, words{"link", "set", "dev", "lo", map[bool]string{true: "up", false: "down"}[up]})
	}
	if err := s.do(ctx, &c); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("network namespace %s: %w", name, err)
	}
	return s.outcome(ctx, t, "network namespace "+name, req)
}

// removeSpace removes our namespace when nothing runs in it.
func (s *session) removeSpace(ctx context.Context, w *world, name string, req providers.ApplyRequest) error {
	if have := w.spaces[name]; have == nil || have.alias() != aliasOf(req.Mark) {
		return nil
	}
	deadline := time.Now().Add(leaveLimit)
	for told := false; ; {
		pids, err := s.pids(ctx, name)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		if !told {
			req.Log(fmt.Sprintf("waiting for processes in network namespace %s to end: %s", name, strings.Join(pids, " ")))
			told = true
		}
		if time.Now().After(deadline) {
			return s.occupied(ctx, name, pids)
		}
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	var c steps
	c.namespace("netns-del", name, "")
	if err := s.do(ctx, &c); err != nil {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	return nil
}

// pids are the processes of a namespace.
func (s *session) pids(ctx context.Context, name string) ([]string, error) {
	res, err := s.host.Conn().Run(ctx, providers.Cmd{Args: []string{"ip", "netns", "pids", name}})
	if err != nil {
		return nil, fmt.Errorf("look for processes in network namespace %s: %w", name, err)
	}
	pids := strings.Fields(string(res.Stdout))
	slices.Sort(pids)
	return pids, nil
}

// occupied is the error of a namespace that processes are in.
func (s *session) occupied(ctx context.Context, name string, pids []string) error {
	var files, told []string
	for _, p := range pids {
		files = append(files, "/proc/"+path.Base(p)+"/comm")
	}
	comm, err := s.host.Conn().ReadFiles(ctx, files...)
	if err != nil {
		return err
	}
	for i, p := range pids {
		told = append(told, fmt.Sprintf("%s (%s)", p, strings.TrimSpace(string(comm[files[i]]))))
	}
	return fmt.Errorf("network namespace %s on %s is kept, since after %s processes are still in it: %s. End them, and run destroy again", name, s.host.Name(), leaveLimit, strings.Join(told, ", "))
}

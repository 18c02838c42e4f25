// Package providers is the contract between Plumb's stages and everything that touches a host or a daemon.
//
// A resource type implements Resource and, where it has them, the single-method abilities below it; stages find
// those by type assertion. Values are cty objects of the implied type of the type's schema, never marked
// (the engine strips and restores marks). The engine checks every answer: a known planned value must come true and
// nothing unknown may remain after Apply; a type that breaks this is reported as a bug of that provider, by name.
//
// Two kinds of resource exist. Objects are made and deleted and carry an ownership Mark where the system allows one;
// an object without our mark is never deleted or taken over (ErrForeign). Settings are changed and put back: what was
// found is returned by Prepare before the first change, kept by the engine, and handed to every later Apply.
package providers

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
)

// ErrForeign is wrapped by an error that says an object of that name exists without our mark.
var ErrForeign = errors.New("exists and is not ours")

// Mark is written on every object that Plumb makes.
type Mark struct {
	Testbed string // lineage of the state
	Address string // of the instance
}

// Resource is one resource type. Methods may be called concurrently for different instances, also on the same host.
type Resource interface {
	// Schema is constant.
	Schema() *schema.Resource
	// Read reports the instance as it is in the world now. It changes nothing, keeps the user's spelling where two
	// spellings mean the same, and must accept a Prior whose computed attributes are null (an apply was killed before
	// they were recorded). Reads of one host in one run share what they fetch through Host.Shared.
	Read(context.Context, ReadRequest) (ReadResult, error)
	// Apply makes the world as Planned says: creates (Prior null), updates, or deletes (Planned null; a setting restores
	// Undo). It is idempotent: half of an earlier, killed Apply may have been done. When it fails it returns what is
	// there now in New (the zero Value: unchanged or nothing) with the error, and leaves the rest for the next Apply. A cancelled
	// context lets it stop between changes, never within one.
	Apply(context.Context, ApplyRequest) (ApplyResult, error)
}

// ReadRequest asks for one instance.
type ReadRequest struct {
	Host  Host // nil for hostless types
	Mark  Mark
	Prior cty.Value // known, maybe with null computed attributes
}

// ReadResult is the answer.
type ReadResult struct {
	Current cty.Value // null: gone
}

// ApplyRequest asks for one change.
type ApplyRequest struct {
	Host    Host
	Mark    Mark
	Prior   cty.Value       // as last read; null: create
	Planned cty.Value       // known but for computed attributes; null: delete
	Undo    json.RawMessage // what Prepare returned; nil if the type has no Prepare
	Reapply bool            // something else took this instance's effect away: do it all again
	Log     func(string)    // progress for people, one line each; never nil
}

// ApplyResult is what is there after Apply.
type ApplyResult struct {
	New cty.Value // wholly known; null after a delete
}

// Preparer is a type that must know something before its first change to be able to take it back, even when Plumb is
// killed in the middle. The engine stores the returned value durably before it calls Apply.
type Preparer interface {
	// Prepare reads what has to be put back. It changes nothing. On an update, and on a create that finishes one that was
	// cut off (Prior null), req.Undo is what is stored already: the result must keep it and may add to it (a key that was not
	// managed before).
	Prepare(ctx context.Context, req ApplyRequest) (json.RawMessage, error)
}

// Planner is a type whose plan is more than "configuration, else prior, else unknown".
type Planner interface {
	Plan(context.Context, PlanRequest) (PlanResult, error)
}

// PlanRequest asks for the plan of one instance.
type PlanRequest struct {
	Host     Host
	Mark     Mark
	Prior    cty.Value // as read; null: create
	Desired  cty.Value // from the configuration with defaults; may hold unknowns
	Proposed cty.Value // what the engine would plan
}

// PlanResult is the plan.
type PlanResult struct {
	Planned cty.Value
	// Cost is taken when it is greater than what the changed attributes cost by the schema; that of a create too. HostReboot: Apply makes what
	// the next boot reads, the engine reboots the host once for all that need it, and then reads the instance again: what is planned must be true by then.
	// Apply answers as if the reboot had been.
	Cost     schema.Cost
	Effects  []string  // for people: "restarts ovs-vswitchd on dut"
	Problems []Problem // what cannot work
}

// Remover is a type whose removal may cost its host more than the instance itself: a setting that only a reboot takes back.
type Remover interface {
	// Removal says what a delete would cost. It reads and changes nothing. A type without it costs what a delete costs: Live.
	Removal(context.Context, RemovalRequest) (RemovalResult, error)
}

// RemovalRequest asks what a delete would cost.
type RemovalRequest struct {
	Host  Host
	Mark  Mark
	Prior cty.Value       // as read; as recorded where it is gone already, but the run that took it away was cut off before the reboot
	Undo  json.RawMessage // what would be put back
}

// RemovalResult is the answer. HostReboot: what was found is put back where it is kept, and takes effect with the reboot that follows.
type RemovalResult struct {
	Cost    schema.Cost
	Effects []string // for people
}

// Problem is something wrong that a person has to mend.
type Problem struct {
	Warning bool
	Host    string   // set when it concerns the host rather than one argument: shown once per host
	Path    cty.Path // the argument; nil for the whole block
	Summary string
	Detail  string // what is wrong, with the arithmetic, and what to do
}

// Claimer is a type that takes something of its host which others may want too. Claims changes nothing and may read
// what is shared through Host. Planned may hold unknowns: what cannot be told is left out.
type Claimer interface {
	Claims(ctx context.Context, host Host, planned cty.Value) (Claims, error)
}

// Claims is what one instance or generator takes from its host.
type Claims struct {
	Cores     []CoreClaim
	Hugepages []HugepageClaim
	Grants    []HugepageClaim // pages that this instance provides (host_hugepages): total of the host, not an addition
	Unique    []Unique
	Provides  []Named
	Needs     []Named
	Sockets   []SocketEnd
	Devices   []DeviceClaim
	MTU       int   // bytes of payload that a frame may have here; 0: not known
	Isolates  []int // CPUs that this instance keeps free of the scheduler (host_cpu_isolation)
}

// CoreClaim takes cores. Polling claims spin and want the core for themselves; two of them on one core are an error
// unless every one of them says Shared.
type CoreClaim struct {
	Cores   []int
	Use     string // "PMD", "lcore", "testpmd forwarding"
	Polling bool
	Shared  bool // the user accepts sharing this core
	Path    cty.Path
}

// HugepageClaim takes (or grants) hugepages of one size in bytes on one NUMA node; Node -1: any node. A claim with Size 0 takes Bytes from
// whichever size the host provides, as DPDK does, rounded up to whole pages; Pages is then not used.
type HugepageClaim struct {
	Size  uint64
	Node  int
	Pages uint64
	Bytes uint64
	What  string // for the arithmetic: "socket-mem 512 MB"
	Path  cty.Path
}

// Unique must occur once among all instances of the same host with the same Scope: {Scope: "ofport on bridge br0", Value: "1"}.
type Unique struct {
	Scope, Value string
	Path         cty.Path
}

// DeviceClaim is a PCI device that polling cores serve: memory and cores should be on its NUMA node, for every frame crosses the link between the nodes
// otherwise.
type DeviceClaim struct {
	PCI   string
	Cores []int  // that serve it; nil: those of all claims of the host with this Use
	Use   string // of the cores: "PMD"
	// Crossing says that the user accepts cores on another node.
	Crossing bool
	Path     cty.Path
}

// Named is a thing that one instance provides and another needs: {Kind: "port on bridge br0", Name: "vhost0"}.
type Named struct {
	Kind, Name string
	Hint       string // of a need, said beside that nobody provides it: what to do
	Summary    string // of a need: what is wrong, in place of the general words; Hint is then all that is said
	Path       cty.Path
}

// SocketEnd is one half of a vhost-user connection.
type SocketEnd struct {
	Socket string // path on the host
	Server bool   // owns the socket and listens
	Switch bool   // the vhost back-end (the switch); false: the virtio driver side (VM, testpmd, generator)
	Queues int    // 0: follows the other half
	Path   cty.Path
}

// Counter is a resource type whose instances frames pass through.
type Counter interface {
	// Count reads the counters of all the given instances of one host in one round trip, result by result in their order.
	Count(ctx context.Context, host Host, of []Subject) ([]Counters, error)
}

// Subject is an instance as applied.
type Subject struct {
	Addr  addrs.Instance
	Value cty.Value
}

// Counters are monotonic totals since the object was made.
type Counters struct {
	Rx, Tx           uint64 // frames that came in from outside, that went out
	RxBytes, TxBytes uint64
	Drops            map[string]uint64 // by the cause the hop itself names: "rx_dropped", "ovs_tx_failure_drops", ...
	// LinkResets is how often the link went up or down since the object was made: a link that flaps in a trial makes it INVALID.
	LinkResets uint64
	// Through says that a hop passes frames on by itself (a VNF) instead of being one side of a switch.
	Through bool
}

// Observer watches something around a measurement, outside the measured window.
type Observer interface {
	// Observe starts watching and returns how to stop. Finish is called once.
	Observe(ctx context.Context, host Host, of []Subject) (finish func(context.Context) ([]Observation, error), err error)
}

// Observation is one thing seen: {Kind: "pmd", Subject: "core 1", Metrics: [{busy, 93.1, %}]}.
type Observation struct {
	Host    string   `json:"host"`
	Kind    string   `json:"kind"`    // pmd, rxq, cache, port, cpu, thread
	Subject string   `json:"subject"` // which of them
	Metrics []Metric `json:"metrics"`
}

// Metric is a figure with its unit.
type Metric struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "", "%", "cycles", "frames", "s"
}

// DataSource is read, never changed.
type DataSource interface {
	Schema() *schema.Resource
	// Read returns the whole object for a configuration without unknowns.
	Read(ctx context.Context, host Host, config cty.Value) (cty.Value, error)
}

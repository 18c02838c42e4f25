package providers

import (
	"context"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// GeneratorType is a kind of traffic generator: testpmd, dummy, ...
type GeneratorType interface {
	Schema() *schema.Generator
	// Claims is as Claimer's.
	Claims(ctx context.Context, host Host, config cty.Value) (Claims, error)
	// Open gets the generator ready: processes started, ports connected. It leaves nothing behind when it fails. The mark is put
	// on all that it starts.
	Open(ctx context.Context, req OpenRequest) (Generator, error)
	// Sweep ends whatever carries the testbed's mark and was left by a Plumb that was killed. Without any, it does nothing.
	Sweep(ctx context.Context, host Host, testbed string) error
}

// OpenRequest says what to open.
type OpenRequest struct {
	Host   Host // nil for a hostless type
	Mark   Mark
	Config cty.Value // known
	// Path is the benchmark's path as applied: the first hop is where the generator sends into, the last where it receives from.
	Path    []Subject
	Traffic Traffic // the first that will be asked for; a generator that must restart to change it restarts between trials
	Log     func(string)
}

// Generator is an open traffic generator.
type Generator interface {
	Abilities() Abilities
	// Trial sends for req.Duration and reports what the generator's own counters say. It drains before it reads the receive
	// counter. An error means that the generator is broken; a trial that cannot count is a result with Health.
	Trial(ctx context.Context, req TrialRequest) (TrialResult, error)
	// Close ends all that Open started. It is called with a context of its own also after a cancelled run.
	Close(ctx context.Context) error
}

// Abilities says what a generator can do; the bench stage refuses what it cannot before the first trial.
type Abilities struct {
	RateControl   bool // can offer less than it is able to
	Bidirectional bool
	Latency       bool
	Bursts        bool     // TrialRequest.Burst, and TrialRequest.Frames sent back to back
	Steps         bool     // TrialRequest.Steps and Direction.LastLoss
	Outage        bool     // TrialRequest.Disturb and Direction.Outage
	MaxFlows      int      // 0: no limit
	Headers       []string // of Traffic.Headers that it can make; nil: l2, ipv4, udp
	Shapes        []string // what else of Traffic it can make: "imix" (Sizes), "vary", "random" (Order), "vlan", "vxlan", "ip" (SrcIP, DstIP); nil: none of them
	Signed        bool     // counts only its own frames
	Model         bool     // sends nothing: a model
	Describe      string   // name and version for the manifest: "dpdk-testpmd 22.11.11"
}

// Traffic is the shape of the frames. Sizes include the FCS (RFC 2544 section 9), which a virtual port does not carry: a 64-byte frame is 60
// bytes in a virtqueue or an AF_PACKET ring, and 84 byte times on a wire (with preamble and inter-frame gap). VLAN tags and tunnel
// headers are part of the size.
type Traffic struct {
	FrameSize      int    // bytes, 64 to 9216
	Sizes          []int  // not nil: a mix of sizes repeated in this order (IMIX); FrameSize is then its mean, rounded
	Flows          int    // distinct combinations of what Headers and Vary say
	Headers        string // "l2", "ipv4", "ipv6", "udp" (IPv4), "udp6", "tcp" (IPv4)
	Vary           string // what tells flows apart: "mac", "ip", "port"; "": mac for l2, ip for ipv4 and ipv6, port for the rest
	Order          string // "incremental" (default) or "random": the order of the flows
	Seed           uint64 // of a random order
	VLANs          []int  // outer first: one is 802.1Q, two are QinQ (802.1ad outside)
	VXLAN          *VXLAN
	Bidirectional  bool
	SrcMAC, DstMAC string // "" for the generator's own
	SrcIP, DstIP   string // first address of each side; "": 198.18.0.1 and 198.19.0.1 (RFC 2544 appendix C.2.2), 2001:2::1 and 2001:2:0:1::1 (RFC 5180)
}

// VXLAN wraps the frames (RFC 7348); FrameSize is then the outer frame's.
type VXLAN struct {
	VNI              int
	SrcMAC, DstMAC   string
	SrcIP, DstIP     string
	SrcPort, DstPort int // 0: by hash of the inner flow, and 4789
}

// TrialRequest is one trial.
type TrialRequest struct {
	Traffic
	Load     float64       // offered frames per second and direction; 0: as fast as the generator can
	Duration time.Duration // of the measured stream
	// Frames, when not 0, sends just so many frames and direction instead of Duration: the path proof and the burst of RFC 9004. With Load 0
	// they go back to back.
	Frames int
	// Burst, when more than 1, sends that many frames back to back and then pauses, so that Load is kept on average (RFC 2544 section 21).
	Burst int
	// Steps follow the first load without a pause in between: RFC 2544 section 26.5 goes from overload to half the rate. Counters are of the whole.
	Steps []Step
	// Slice, when not 0, asks for Direction.LossSlices: the loss over time, in slices of this length.
	Slice time.Duration
	// Disturb, if not nil, is called once, DisturbAfter into the stream, while the stream goes on: the reset of RFC 2544 section 26.6. When it
	// fails, the trial ends with that error.
	Disturb      func(context.Context) error
	DisturbAfter time.Duration
	// Drain is how long to wait for frames in flight between the end of the stream and reading the receive counter (RFC 2544
	// section 23 d: 2 s).
	Drain time.Duration
}

// Step is a load and for how long.
type Step struct {
	Load     float64
	Duration time.Duration
}

// TrialResult is what the generator counted. Direction 0 is along the path, 1 against it.
type TrialResult struct {
	Directions []Direction
	Duration   time.Duration // measured between the counter reads that bound the stream
	Health     []string      // why the trial must not count: "sender reached 81 % of the offered load"; empty: fine
	Notes      []string      // what a reader should know though the trial counts: "the sender fell behind 3 times, 40 ms at most"
}

// Direction is one direction's frames.
type Direction struct {
	Offered float64 // frames/s asked for; 0: maximum
	Sent    uint64
	// Unsent are frames that were due and that the port did not take, because the queue of the device under test was full. At an offered load
	// they are lost frames; at Load 0 they only say that the port is the limit.
	Unsent     uint64
	Received   uint64 // distinct frames of this trial
	Duplicated uint64 // received more than once, beyond the first
	Reordered  uint64 // received after a later one of the same flow's stream and queue
	Surplus    uint64 // frames that are not of this trial: strays, ARP, LLDP, late ones of an earlier trial. Never counted as received
	RxDrops    uint64 // arrived at the tester's port but were dropped there (tester loss)
	Latency    *Latency
	// LastLoss is when the last frame that got lost had been sent, since the start of the stream; nil: nothing was lost, or not known.
	LastLoss *time.Duration
	// LossSlices are the frames lost by when they were due, in slices of TrialRequest.Slice since the start of the stream: sent and not
	// received, and unsent. Their sum is Sent+Unsent-Received. nil: not asked for, or not known.
	LossSlices []uint64
	// Outage is the longest time in which nothing came back between two received frames, and OutageAt when it began; nil: not known.
	Outage, OutageAt *time.Duration
}

// Latency in nanoseconds; Min and Max over the samples, the rest percentiles.
type Latency struct {
	Samples                             uint64
	Min, P50, P90, P99, P999, Max, Mean float64
	// PDV is P99.9 minus Min (RFC 8219 section 7.3.1); Jitter the mean of the absolute differences of successive samples.
	PDV, Jitter float64
	IPDV        *IPDV `json:",omitempty"`
}

// IPDV is the spread of the differences between the delays of successive samples (RFC 8219 section 7.3.2), in nanoseconds.
type IPDV struct{ Min, P001, P50, P999, Max float64 }

// Resetter is a resource type that can be restarted on purpose, to measure how long the path is interrupted (RFC 2544 section 26.6, RFC 6201).
type Resetter interface {
	// Resets names the kinds of reset it knows: "restart" (asked to end, then started), "kill" (SIGKILL, then started).
	Resets() []string
	// Reset does it and returns when the object runs again, as it was applied. What else on the host lost its effect by it
	// (schema.Resource.LostOn) is applied again by the caller.
	Reset(ctx context.Context, host Host, mark Mark, of Subject, kind string) error
}

// Loader disturbs a host on purpose while it is measured: stress-ng on CPUs, caches or memory.
type Loader interface {
	// Schema of the benchmark's load block, without host, which the bench stage adds.
	Schema() *schema.Block
	// Start starts the load and returns when it runs; stop ends it and waits until it has gone. It leaves nothing behind when it fails.
	Start(ctx context.Context, host Host, mark Mark, config cty.Value) (stop func(context.Context) error, err error)
	// Sweep is as GeneratorType's.
	Sweep(ctx context.Context, host Host, testbed string) error
}

// Set is all that the providers offer: filled by providers/builtin, explicitly.
type Set struct {
	Resources  []Resource
	Data       []DataSource
	Generators []GeneratorType
	// HostObserver watches the host itself (CPU per core) in every benchmark.
	HostObserver Observer
	// Loader disturbs hosts on purpose; nil: load blocks are refused.
	Loader     Loader
	HostSchema *schema.Block
	// OpenHost connects to a host block's machine. Values of config are of HostSchema's implied type. It does not fail for what is
	// only needed later; a machine that does not answer is an error that wraps ErrUnreachable. others gives the hosts that this one is reached through.
	OpenHost func(ctx context.Context, name string, config cty.Value, others Hosts) (Host, error)
	// Reboot reboots a host and returns when it runs again: with a new boot id, reachable, its units started. It has a limit of its own. Host.Forget
	// has been called when it returns. When the context ends it stops waiting; the host may be rebooting then.
	Reboot func(ctx context.Context, host Host, log func(string)) error
	// RebootAllowed says whether a host block allows to reboot its machine, and if not, why in a sentence.
	RebootAllowed func(config cty.Value) (ok bool, why string)
	// Examine holds a host against what a DPDK testbed needs. It changes nothing.
	Examine func(ctx context.Context, host Host) ([]Finding, error)
	// Snapshot is a host's fingerprint: sorted lines "what: value" of all that a testbed may change and destroy must put back.
	Snapshot func(ctx context.Context, host Host) ([]string, error)
}

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
	MaxFlows      int    // 0: no limit
	Signed        bool   // counts only its own frames
	Describe      string // name and version for the manifest: "dpdk-testpmd 22.11.11"
}

// Traffic is the shape of the frames. Sizes include the FCS (RFC 2544 section 9).
type Traffic struct {
	FrameSize      int // bytes, 64 and up
	Flows          int
	Headers        string // "l2", "ipv4", "udp"
	Bidirectional  bool
	SrcMAC, DstMAC string // "" for the generator's own
}

// TrialRequest is one trial.
type TrialRequest struct {
	Traffic
	Load     float64       // offered frames per second and direction; 0: as fast as the generator can
	Duration time.Duration // of the measured stream
	Frames   int           // not 0: send just so many frames (path proof) instead of Duration
	// Drain is how long to wait for frames in flight between the end of the stream and reading the receive counter (RFC 2544
	// section 23 d: 2 s).
	Drain time.Duration
}

// TrialResult is what the generator counted. Direction 0 is along the path, 1 against it.
type TrialResult struct {
	Directions []Direction
	Duration   time.Duration // measured between the counter reads that bound the stream
	Health     []string      // why the trial must not count: "sender reached 81 % of the offered load"; empty: fine
}

// Direction is one direction's frames.
type Direction struct {
	Offered  float64 // frames/s asked for; 0: maximum
	Sent     uint64
	Unsent   uint64 // the port did not take them
	Received uint64
	RxDrops  uint64 // arrived at the tester's port but were dropped there (tester loss)
	Latency  *Latency
}

// Latency in nanoseconds; Min and Max over the samples, the rest percentiles.
type Latency struct {
	Samples                       uint64
	Min, P50, P90, P99, P999, Max float64
}

// Set is all that the providers offer: filled by providers/builtin, explicitly.
type Set struct {
	Resources  []Resource
	Data       []DataSource
	Generators []GeneratorType
	// HostObserver watches the host itself (CPU per core) in every benchmark.
	HostObserver Observer
	HostSchema   *schema.Block
	// OpenHost connects to a host block's machine. Values of config are of HostSchema's implied type; it does not fail for what is
	// only needed later.
	OpenHost func(ctx context.Context, name string, config cty.Value) (Host, error)
	// Snapshot is a host's fingerprint: sorted lines "what: value" of all that a testbed may change and destroy must put back.
	Snapshot func(ctx context.Context, host Host) ([]string, error)
}

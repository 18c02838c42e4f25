// Package bench runs the benchmarks of an applied testbed and keeps what they measured.
//
// A trial is PASS, FAIL or INVALID; an INVALID trial is repeated up to a limit and is never taken for the switch's result.
// Results are not state: each run has a folder results/<run>/ with everything that a report or a comparison needs, offline.
// Start reading at Run (the model).
package bench

import (
	"time"

	"plumb/providers"
)

// Verdict of a trial.
type Verdict string

const (
	Pass    Verdict = "PASS"    // counted, and within the goal
	Fail    Verdict = "FAIL"    // counted, and outside the goal
	Invalid Verdict = "INVALID" // does not count; Trial.Reasons says why
)

// Run is one run of benchmarks: results/<ID>/run.json.
type Run struct {
	Format       string      `json:"format_version"` // "1.0"
	ID           string      `json:"id"`             // 20261201T020304Z-1f3a
	PlumbVersion string      `json:"plumb_version"`
	Started      time.Time   `json:"started"`
	Ended        time.Time   `json:"ended"`             // of what is here
	Done         bool        `json:"done"`              // all its benchmarks came to their end; false: it may be resumed
	Resumed      []time.Time `json:"resumed,omitempty"` // when an interrupted run was taken up again
	Testbed      string      `json:"testbed"`           // lineage
	Serial       uint64      `json:"serial"`            // of the state that was measured
	Hosts        []HostFacts `json:"hosts"`
	Benchmarks   []Benchmark `json:"benchmarks"`
}

// HostFacts describes a host that took part, as "what", "value" rows fit for a report.
type HostFacts struct {
	Name string      `json:"name"`
	Rows [][2]string `json:"facts"`
}

// Benchmark is one benchmark's results.
type Benchmark struct {
	Addr      string      `json:"address"`
	Method    string      `json:"method"`
	Generator string      `json:"generator"` // address
	Tool      string      `json:"tool"`      // Abilities.Describe
	Path      []string    `json:"path"`      // addresses
	Proof     []Proof     `json:"proof"`
	Phases    []string    `json:"phases"` // which phases each trial had and how long, and which were shortened against RFC 2544 section 23
	Trials    []Trial     `json:"trials"`
	Summary   []Summary   `json:"summary"`
	Figures   []Figure    `json:"figures,omitempty"`  // what a search found; continuous has none
	Settings  [][2]string `json:"settings,omitempty"` // the method's arguments in words, defaults included
	Took      float64     `json:"took_s"`             // wall time of all trials with their waits, over all resumptions
	Requires  []Require   `json:"requires"`
	Error     string      `json:"error,omitempty"` // an infrastructure error ended it

	Headers       string   `json:"headers"` // l2, ipv4, udp
	Bidirectional bool     `json:"bidirectional,omitempty"`
	Signed        bool     `json:"signed,omitempty"`           // the generator counts only its own frames
	LineRate      float64  `json:"line_rate_bps,omitempty"`    // of the link, as configured; 0: not known
	MaxLoss       *float64 `json:"max_loss_percent,omitempty"` // the loss goal; nil: none, every trial that counts is a PASS
	Notes         []string `json:"notes,omitempty"`            // what a reader must know: an observer that did not work, counters that mix directions
}

// Proof says that a few frames were seen at every hop before the first trial.
type Proof struct {
	FrameSize int      `json:"frame_size"`
	Direction int      `json:"direction"`
	Sent      uint64   `json:"sent"`
	Seen      []uint64 `json:"seen"` // by hop of the path, last: the receiver
}

// Figure is what a method found for one frame size and flow count, over its repeats.
type Figure struct {
	FrameSize int    `json:"frame_size"`
	Flows     int    `json:"flows"`
	Name      string `json:"name"`  // throughput, NDR, PDR, back_to_back, buffer_time, recovery_time, reset_time, ...
	Label     string `json:"label"` // what it may be called: "RFC 2544 throughput", or with the words that say how it differs
	Unit      string `json:"unit"`  // fps (and direction), frames, s, ns, ratio
	Primary   bool   `json:"primary,omitempty"`
	// Values by repeat. A repeat that found none is missing here and counted in Nones.
	Values []float64 `json:"values"`
	Nones  []string  `json:"none,omitempty"`  // why
	Bound  string    `json:"bound,omitempty"` // ">=": every repeat ended at the greatest load that was allowed
	Median float64   `json:"median"`
	Mean   float64   `json:"mean"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	StdDev float64   `json:"stddev"`
	CV     float64   `json:"cv"`
	// Low and High are the 95 % confidence interval of the mean (Student's t); both 0 with fewer than two values.
	Low  float64 `json:"ci95_low"`
	High float64 `json:"ci95_high"`
	// Lower and Upper are the bounds that the search of the median repeat ended with.
	Lower      float64     `json:"lower_bound,omitempty"`
	Upper      float64     `json:"upper_bound,omitempty"`
	Unsteady   bool        `json:"unsteady,omitempty"` // CV above the benchmark's unsteady_above
	Unfinished bool        `json:"unfinished,omitempty"`
	Attributes [][2]string `json:"attributes,omitempty"` // the goal's
	Trials     int         `json:"trials"`               // counted trials, of all repeats, that it rests on
	Took       float64     `json:"took_s"`               // their wall time
}

// Trial is one row. Rates are frames per second, sizes bytes with FCS.
type Trial struct {
	FrameSize  int       `json:"frame_size"`
	Flows      int       `json:"flows"`
	Phase      string    `json:"phase,omitempty"` // what it was for: search, verify, curve, latency, burst, ...; "": the measurement itself
	Repeat     int       `json:"repeat"`          // from 1; 0: before the repeats, such as the throughput that latency is measured at
	Attempt    int       `json:"attempt"`         // from 1; more when earlier ones were INVALID
	Started    time.Time `json:"started"`
	Took       float64   `json:"took_s,omitempty"`     // wall time with warm-up and waits
	Intended   float64   `json:"intended_s,omitempty"` // asked for
	Duration   float64   `json:"duration_s"`           // measured
	Frames     int       `json:"frames,omitempty"`     // asked for instead of a duration
	Burst      int       `json:"burst,omitempty"`
	Steps      []Step    `json:"steps,omitempty"` // loads that followed the first
	Offered    float64   `json:"offered_fps"`     // 0: maximum
	Sent       uint64    `json:"sent"`
	Unsent     uint64    `json:"unsent"`
	Received   uint64    `json:"received"`
	Duplicated uint64    `json:"duplicated,omitempty"`
	Reordered  uint64    `json:"reordered,omitempty"`
	Surplus    uint64    `json:"surplus,omitempty"` // strays that the tester told apart; not in Received
	TxRate     float64   `json:"tx_fps"`
	RxRate     float64   `json:"rx_fps"`
	RxBitrate  float64   `json:"rx_l1_bps"` // with preamble and gap, 20 bytes a frame
	// LossRatio is (sent+unsent-received)/(sent+unsent) at an offered load: a frame that the full queue of the device refused is lost; and
	// (sent-received)/sent at maximum. Of two directions it is the greater.
	LossRatio    float64                 `json:"loss_ratio"`
	Verdict      Verdict                 `json:"verdict"`
	Reasons      []string                `json:"reasons,omitempty"`
	Ledger       []Hop                   `json:"ledger"`
	Observations []providers.Observation `json:"observations,omitempty"`
	Latency      *providers.Latency      `json:"latency_ns,omitempty"`
	LastLoss     *float64                `json:"last_loss_s,omitempty"` // into the stream
	Outage       *float64                `json:"outage_s,omitempty"`
	OutageAt     *float64                `json:"outage_at_s,omitempty"`
	Slice        float64                 `json:"slice_s,omitempty"`     // 0: the loss over time was not asked for
	LossSlices   []uint64                `json:"loss_slices,omitempty"` // frames lost by slice of when they were due, all directions together
	Notes        []string                `json:"notes,omitempty"`       // what a reader should know though the trial counts
	Directions   []Direction             `json:"directions,omitempty"`  // when there are two; the figures above are their sum
}

// Step is a load that followed without a pause.
type Step struct {
	Offered  float64 `json:"offered_fps"`
	Duration float64 `json:"duration_s"`
}

// Direction is one direction's frames of a bidirectional trial.
type Direction struct {
	Sent     uint64             `json:"sent"`
	Unsent   uint64             `json:"unsent"`
	Received uint64             `json:"received"`
	Latency  *providers.Latency `json:"latency_ns,omitempty"`
}

// Hop is one line of the packet ledger: In frames arrived here, Out left towards the next hop. Lost between two hops is the
// difference of the one's Out and the other's In; lost inside is In minus Out. In at the receiver is what the generator received.
// Lost is the Out of the hop before minus the Out of this one (the receiver's Out is its In). The sender is the first line: at an offered load its In is
// what was due (sent + unsent), its Out what was sent, and what it lost are the frames that the full queue of the device refused
// (cause device_queue_full); at maximum load nothing is due, and In is Out. So in each direction the sender's In = received + the sum of Lost, and sent =
// received + the sum of Lost behind the sender.
type Hop struct {
	Name        string            `json:"name"`                // "generator.testpmd.tg", "ovs_port.t0", ...
	Direction   int               `json:"direction,omitempty"` // 1: against the path
	Role        Role              `json:"role"`
	In          uint64            `json:"in"`
	Out         uint64            `json:"out"`
	Lost        int64             `json:"lost"`             // on the way from the hop before to here, or inside it; negative: surplus
	Causes      map[string]uint64 `json:"causes,omitempty"` // drops that the hop itself named, in this trial
	Unexplained int64             `json:"unexplained"`      // Lost minus the causes
}

// Role is what a hop does with the frames.
type Role string

const (
	Sender   Role = "sender"   // the generator: In is what was due, Out what it sent
	Enter    Role = "enter"    // a switch port that frames come in by: counted as received by the switch
	Leave    Role = "leave"    // a switch port that frames go out by: counted as sent by the switch
	Through  Role = "through"  // passes frames on by itself: a VNF
	Receiver Role = "receiver" // the generator: In is what came back
)

// Summary is the spread over the repeats of one frame size and flow count. Only PASS and FAIL trials count. The trials of a method that searches are
// at many loads: its summaries say how many there were and what was busy, and its Figures what was found.
type Summary struct {
	FrameSize int     `json:"frame_size"`
	Flows     int     `json:"flows"`
	Trials    int     `json:"trials"`
	Invalid   int     `json:"invalid"`
	RxMedian  float64 `json:"rx_fps_median"`
	RxMin     float64 `json:"rx_fps_min"`
	RxMax     float64 `json:"rx_fps_max"`
	RxCV      float64 `json:"rx_fps_cv"` // coefficient of variation; 0 with one trial
	// RxLow and RxHigh are the 95 % confidence interval of the mean (Student's t); both 0 with fewer than two trials.
	RxLow         float64 `json:"rx_fps_ci95_low,omitempty"`
	RxHigh        float64 `json:"rx_fps_ci95_high,omitempty"`
	Unsteady      bool    `json:"unsteady,omitempty"` // RxCV above the benchmark's unsteady_above
	TxMedian      float64 `json:"tx_fps_median"`
	LossMedian    float64 `json:"loss_ratio_median"`
	BitrateMedian float64 `json:"rx_l1_bps_median"`
	Bottleneck    string  `json:"bottleneck,omitempty"` // "PMD core 1 busy 99 %"
}

// Require is the outcome of one require block.
type Require struct {
	Holds   bool   `json:"holds"`
	Message string `json:"message,omitempty"` // why not
	Where   string `json:"where"`             // file:line
}

package bench

import (
	"fmt"
	"math"
	"time"

	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
)

// settings are a benchmark block's arguments, decoded.
type settings struct {
	sizes, flows    []int
	mix             []int             // sizes of a mix in their order; nil: frames of one size
	mean            float64           // of the mix, NaN without one
	traffic         providers.Traffic // without size and flows
	lineRate        float64           // bits/s; 0: not given
	warmUp, settle  time.Duration
	drain, rest     time.Duration
	learnOnce       bool // warm up before the first trial of each search only
	repeat, retries int
	tolerance       float64 // of the offered load: 0.05
	unsteady        float64 // coefficient of variation: 0.05
	observe         bool
	loads           []disturbance
	plan            plan
	rows            [][2]string // all of it in words
}

// decode reads a benchmark's values. Marks are ignored, null is the default; unknown is an error: a benchmark runs when everything is applied.
// loader is the schema of load blocks, nil where there are none.
func decode(b *eval.Benchmark, loader *schema.Block) (settings, error) {
	var s settings
	top := &fields{v: b.Config, block: Schema(loader)}
	if err := top.open("benchmark"); err != nil {
		return s, err
	}
	m, ok := Methods()[b.Method]
	if !ok {
		return s, fmt.Errorf("there is no method %q; a benchmark has one method block, such as continuous", b.Method)
	}
	method := &fields{v: b.MethodCfg, block: m}
	if err := method.open(b.Method); err != nil {
		return s, err
	}
	traffic := top.inner("traffic")
	s.decodeTraffic(traffic)
	top.fail(traffic.err)
	s.decodeWaits(top, b.Method)
	s.repeat, s.retries = int(top.num("repeat")), int(top.num("invalid_retries"))
	if s.repeat == 0 {
		s.repeat = defaultRepeat(b.Method)
	}
	s.tolerance, s.unsteady, s.observe = top.share("rate_tolerance"), top.share("unsteady_above"), top.flag("observe")
	if loader != nil {
		s.loads = disturbances(top, loader)
	}
	if top.err != nil {
		return s, top.err
	}
	s.plan = s.decodeMethod(method, b.Method)
	if method.err != nil {
		return s, method.err
	}
	s.rows = append(method.rows(""), traffic.rows("traffic.")...)
	if s.mix == nil && !traffic.isSet("frame_sizes") {
		s.rows = append(s.rows, [2]string{"traffic.frame_sizes", words(numbers(s.sizes...))})
	}
	s.rows = append(s.rows, [][2]string{{"repeat", fmt.Sprint(s.repeat)}, {"invalid_retries", fmt.Sprint(s.retries)}, {"rate_tolerance", fmt.Sprintf("%g %%", 100*s.tolerance)},
		{"unsteady_above", fmt.Sprintf("%g %%", 100*s.unsteady)}, {"observe", map[bool]string{true: "yes", false: "no"}[s.observe]}}...)
	for i, l := range s.loads {
		s.rows = append(s.rows, [2]string{fmt.Sprintf("load.%d", i), l.words})
	}
	return s, s.try()
}

// decodeWaits fills in the waits, whose defaults depend on the method: the whole of RFC 2544 section 23 for its own, little where a search makes many short
// trials.
func (s *settings) decodeWaits(f *fields, method string) {
	s.warmUp, s.settle, s.drain = 2*time.Second, 2*time.Second, 2*time.Second
	if rfc2544(method) {
		s.rest = 5 * time.Second
	}
	if method == "ndr_pdr" {
		s.warmUp, s.settle, s.drain, s.learnOnce = time.Second, 200*time.Millisecond, 500*time.Millisecond, true
	}
	for name, d := range map[string]*time.Duration{"warm_up": &s.warmUp, "settle": &s.settle, "drain": &s.drain, "rest": &s.rest} {
		if f.isSet(name) {
			*d = f.duration(name)
		}
	}
	if b := f.str("warm_up_before"); b != "" {
		s.learnOnce = b == "search"
	}
}

// cells are all that a method is run for, in order.
func (s *settings) cells() []cell {
	var out []cell
	for _, size := range s.sizes {
		for _, flows := range s.flows {
			out = append(out, cell{size, flows})
		}
	}
	return out
}

// directions is how many there are.
func (s *settings) directions() int {
	if s.traffic.Bidirectional {
		return 2
	}
	return 1
}

// theoretical is the greatest frame rate of the link for a frame size, 0 when the link is not known.
func (s *settings) theoretical(size int) float64 {
	if s.lineRate == 0 {
		return 0
	}
	if s.mix != nil {
		return math.Floor(s.lineRate / ((s.mean + wireOverhead) * 8))
	}
	return LineRateFPS(s.lineRate, size)
}

package dpdk

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// Dummy is the generator type dummy: a model of tester and switch together, for trying methods and reports without any hardware.
type Dummy struct{ schema *schema.Generator }

var _ providers.GeneratorType = (*Dummy)(nil)

// NewDummy is the type.
func NewDummy() *Dummy {
	num := func(def float64, least, most float64, what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.Number, Optional: true, Default: cty.NumberFloatVal(def), Description: what, Validate: func(v cty.Value) error {
			if f, _ := v.AsBigFloat().Float64(); f < least || f > most {
				return fmt.Errorf("%v is not between %v and %v", f, least, most)
			}
			return nil
		}}
	}
	return &Dummy{schema: &schema.Generator{
		Type: "dummy",
		Description: "A model of a tester and a switch, for trying methods without hardware: a capacity with noise, a queue, latency that grows with load. It sends nothing, takes no time, and gives the " +
			"same figures for the same seed, in whatever order trials are made. The path may be empty.",
		Example: `generator "dummy" "model" {
  capacity = 2500000
  noise    = 0.01
}`,
		Hostless: true,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"capacity":    num(1e6, 1, 1e12, "Frames a second that the switch forwards, both directions together, with one flow."),
			"bit_rate":    num(0, 0, 1e15, "Most bits a second on the wire and direction, with 20 bytes a frame for preamble and gap. 0: no limit."),
			"tester_rate": num(1e7, 1, 1e12, "Most frames a second and direction that the tester can send."),
			"flow_cost":   num(0, 0, 1, "Share of the capacity that is lost with each tenfold number of flows: 0.1 leaves 90 % at 10 flows and 81 % at 100."),
			"noise":       num(0, 0, 1, "Standard deviation of the capacity from trial to trial, as a share of it."),
			"queue":       num(1024, 0, 1e9, "Frames that the switch holds: a stream loses none until they are full."),
			"latency":     num(10, 0, 1e9, "Microseconds that a frame takes through an idle switch."),
			"jitter":      num(1, 0, 1e9, "Microseconds that latency spreads in an idle switch. Both grow with load."),
			"seed":        num(1, 0, 1e15, "Other figures for each value."),
		}},
	}}
}

// Schema is constant.
func (d *Dummy) Schema() *schema.Generator { return d.schema }

// Claims are none.
func (d *Dummy) Claims(context.Context, providers.Host, cty.Value) (providers.Claims, error) {
	return providers.Claims{}, nil
}

// Open makes the model.
func (d *Dummy) Open(_ context.Context, req providers.OpenRequest) (providers.Generator, error) {
	f := func(name string) float64 {
		v := req.Config.GetAttr(name)
		if v.IsNull() {
			v = d.schema.Block.Attributes[name].Default
		}
		x, _ := v.AsBigFloat().Float64()
		return x
	}
	return &model{capacity: f("capacity"), bits: f("bit_rate"), tester: f("tester_rate"), flowCost: f("flow_cost"), noise: f("noise"), queue: f("queue"),
		latency: f("latency") * 1e3, jitter: f("jitter") * 1e3, seed: uint64(f("seed")), made: map[string]int{}}, nil
}

// Sweep has nothing to end.
func (d *Dummy) Sweep(context.Context, providers.Host, string) error { return nil }

type model struct {
	capacity, bits, tester, flowCost, noise, queue float64
	latency, jitter                                float64 // ns
	seed                                           uint64
	made                                           map[string]int // trials by what was asked for, so that repeats differ
}

// Abilities are all that there are.
func (m *model) Abilities() providers.Abilities {
	return providers.Abilities{RateControl: true, Bidirectional: true, Latency: true, Signed: true, Describe: "dummy: a model, nothing was measured"}
}

// Close does nothing.
func (m *model) Close(context.Context) error { return nil }

// Trial works out what would have happened. It takes no time.
func (m *model) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	if err := ctx.Err(); err != nil {
		return providers.TrialResult{}, err
	}
	if req.FrameSize < 64 || req.Frames == 0 && req.Duration <= 0 {
		return providers.TrialResult{}, errors.New("generator dummy needs frames of 64 bytes or more, and a duration")
	}
	directions := 1
	if req.Bidirectional {
		directions = 2
	}
	res := providers.TrialResult{Duration: req.Duration}
	if req.Frames > 0 {
		for range directions {
			res.Directions = append(res.Directions, providers.Direction{Offered: req.Load, Sent: uint64(req.Frames), Received: uint64(req.Frames)})
		}
		return res, nil
	}
	random := m.random(req)
	seconds := req.Duration.Seconds()
	wire := math.Inf(1)
	if m.bits > 0 {
		wire = m.bits / float64(8*(req.FrameSize+20))
	}
	offered := min(m.tester, wire)
	if req.Load > 0 {
		offered = min(offered, req.Load)
	}
	capacity := m.capacity * math.Pow(1-m.flowCost, math.Log10(float64(max(1, req.Flows)))) / float64(directions)
	for range directions {
		now := max(0, capacity*(1+m.noise*random.NormFloat64()))
		sent := math.Floor(offered * seconds)
		received := min(sent, math.Floor(now*seconds+m.queue))
		res.Directions = append(res.Directions, providers.Direction{Offered: req.Load, Sent: uint64(sent), Received: uint64(received),
			Latency: m.delay(random, offered, now, uint64(received))})
	}
	if req.Load > 0 && offered < req.Load*0.999 {
		res.Health = append(res.Health, fmt.Sprintf("sender reached %.0f %% of the offered load", 100*offered/req.Load))
	}
	return res, nil
}

// random is the same for the same seed, request and repeat.
func (m *model) random(req providers.TrialRequest) *rand.Rand {
	key := fmt.Sprintf("%d/%d/%s/%t/%g/%s", req.FrameSize, req.Flows, req.Headers, req.Bidirectional, req.Load, req.Duration)
	m.made[key]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + "/" + strconv.Itoa(m.made[key]))) // a hash takes everything
	return rand.New(rand.NewPCG(m.seed, h.Sum64()))
}

// delay is latency as in a queue of one server: it grows with the share of the capacity that is used, up to a full queue.
func (m *model) delay(random *rand.Rand, offered, capacity float64, received uint64) *providers.Latency {
	if received == 0 || capacity <= 0 {
		return nil
	}
	full := m.queue / capacity * 1e9
	extra := full
	if load := offered / capacity; load < 1 {
		extra = min(full, load/(1-load)/capacity*1e9)
	}
	spread := (m.jitter + extra) * (1 + 0.1*random.Float64())
	at := func(p float64) float64 { return m.latency + spread*-math.Log(1-p) } // of an exponential distribution
	l := &providers.Latency{Samples: received, Min: m.latency, P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999)}
	l.Max = max(l.P999, m.latency+spread*math.Log(float64(received)+1))
	return l
}

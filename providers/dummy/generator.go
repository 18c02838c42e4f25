package dummy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// Generator is the generator type dummy.
type Generator struct{}

var _ providers.GeneratorType = Generator{}

// Schema of generator "dummy".
func (Generator) Schema() *schema.Generator {
	number := func(def float64, what string, check func(float64) error) *schema.Attribute {
		a := &schema.Attribute{Type: cty.Number, Optional: true, Default: cty.NumberFloatVal(def), Description: what}
		a.Validate = func(v cty.Value) error {
			f, _ := v.AsBigFloat().Float64()
			return check(f)
		}
		return a
	}
	ratio := func(f float64) error {
		if f < 0 || f > 1 {
			return errors.New("it is a ratio from 0 to 1")
		}
		return nil
	}
	positive := func(f float64) error {
		if f <= 0 {
			return errors.New("it must be greater than 0")
		}
		return nil
	}
	notNegative := func(f float64) error {
		if f < 0 {
			return errors.New("it must not be negative")
		}
		return nil
	}
	inside := func(f float64) error {
		if f <= 0 || f >= 1 {
			return errors.New("it is a ratio above 0 and below 1")
		}
		return nil
	}
	drift := func(f float64) error {
		if f < -1 || f > 1 {
			return errors.New("it is a ratio from -1 to 1")
		}
		return nil
	}
	whole := func(f float64) error {
		if f < 0 || f != math.Trunc(f) {
			return errors.New("it must be a whole number, 0 or more")
		}
		return nil
	}
	return &schema.Generator{
		Type:     "dummy",
		Hostless: true,
		Description: "A model of a switch and its tester instead of traffic, for trying methods and reports without hardware. " +
			"Its trials take no time, and the same seed gives the same numbers. Its figures say nothing about any real switch.",
		Example: `generator "dummy" "model" {
  capacity = 10e6
  noise    = 0.01
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"capacity":       number(1e6, "Frames per second that the switch forwards, all directions together, with one flow.", positive),
			"byte_rate":      number(0, "Bytes per second that it forwards at most, frames with FCS. 0: no limit.", notNegative),
			"tester_rate":    number(20e6, "Frames per second and direction that the tester can send, and sends within bursts. A greater offered load makes the trial INVALID.", positive),
			"noise":          number(0, "Standard deviation of the capacity from trial to trial, as a ratio.", ratio),
			"drift":          number(0, "Ratio of the capacity that is gained with each trial; below 0: lost.", drift),
			"loss":           number(0, "Ratio of frames lost at random whatever the load.", ratio),
			"flow_penalty":   number(0, "Ratio of the capacity that each factor of ten in flows takes away.", ratio),
			"knee_width":     number(0.1, "With a soft knee: how far below the capacity loss begins, as a ratio of it.", inside),
			"inversion_from": number(0, "Offered frames per second and direction from which inversion_loss is lost, up to below inversion_to, though greater loads may pass.", notNegative),
			"inversion_to":   number(0, "See inversion_from. 0: there is no such range of loads.", notNegative),
			"inversion_loss": number(0.01, "Ratio of frames lost between inversion_from and inversion_to.", ratio),
			"buffer": number(0, "Frames that the switch queues in each direction: a burst of n frames loses what n * (1 - capacity / tester_rate) is greater. "+
				"0: no queue in a stream, and a burst of a given number of frames has no limit.", notNegative),
			"recovery_time": number(0, "Milliseconds for which the switch still loses a tenth of the frames after an overload ends.", notNegative),
			"reset_time":    number(0, "Milliseconds for which nothing is forwarded when the switch is reset in a trial.", notNegative),
			"latency":       number(10000, "Nanoseconds through the empty switch.", positive),
			"knee": {Type: cty.String, Optional: true, Default: cty.StringVal("step"), OneOf: []string{"step", "soft"},
				Description: "How loss begins: step, all up to the capacity is forwarded; soft, the forwarding rate bends from the offered load to the capacity."},
			"refuses": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Whether a full switch refuses frames, as a vhost-user port does, instead of taking and dropping them."},
			"fault": {Type: cty.String, Optional: true, Default: cty.StringVal("queue"), OneOf: []string{"queue", "link", "slow", "counters"},
				Description: "What is wrong with every fault_every-th trial: queue, the tester's receive queue was full; link, the link flapped; slow, the tester sent a fifth less than it was asked and does not know; " +
					"counters, more came back than was sent."},
			"fault_every": number(0, "How often a trial has the fault: every such trial, a whole number. 0: never.", whole),
			"seed": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1), Description: "Seed of the noise; a whole number.",
				Validate: func(v cty.Value) error {
					f, _ := v.AsBigFloat().Float64()
					return whole(f)
				}},
		}},
	}
}

// Claims are none.
func (Generator) Claims(context.Context, providers.Host, cty.Value) (providers.Claims, error) {
	return providers.Claims{}, nil
}

// Open makes a model; nothing is started.
func (Generator) Open(_ context.Context, req providers.OpenRequest) (providers.Generator, error) {
	num := func(name string) float64 {
		f, _ := req.Config.GetAttr(name).AsBigFloat().Float64()
		return f
	}
	seed := num("seed")
	if seed > math.MaxUint32 {
		return nil, fmt.Errorf("seed %g is greater than %d", seed, uint32(math.MaxUint32))
	}
	m := model{
		capacity: num("capacity"), byteRate: num("byte_rate"), testerRate: num("tester_rate"), noise: num("noise"), drift: num("drift"), loss: num("loss"),
		flowPenalty: num("flow_penalty"), latency: num("latency"), inversionFrom: num("inversion_from"), inversionTo: num("inversion_to"), inversionLoss: num("inversion_loss"),
		buffer: num("buffer"), recovery: seconds(num("recovery_time") / 1000), outage: seconds(num("reset_time") / 1000), refuses: req.Config.GetAttr("refuses").True(),
		fault: req.Config.GetAttr("fault").AsString(), faultEvery: int(num("fault_every")), rand: rand.New(rand.NewPCG(uint64(seed), 0)),
	}
	if req.Config.GetAttr("knee").AsString() == "soft" {
		m.kneeWidth = num("knee_width")
	}
	return &generator{m}, nil
}

// Sweep has nothing to end.
func (Generator) Sweep(context.Context, providers.Host, string) error { return nil }

type generator struct{ model model }

func (g *generator) Abilities() providers.Abilities {
	return providers.Abilities{
		RateControl: true, Bidirectional: true, Latency: true, Bursts: true, Steps: true, Outage: true, Signed: true, Model: true,
		Headers: []string{"l2", "ipv4", "ipv6", "udp", "udp6", "tcp"}, Describe: "dummy: a model, no traffic",
	}
}

func (g *generator) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	if err := ctx.Err(); err != nil {
		return providers.TrialResult{}, err
	}
	if req.Disturb != nil {
		if err := req.Disturb(ctx); err != nil {
			return providers.TrialResult{}, fmt.Errorf("disturb the device under test: %w", err)
		}
	}
	return g.model.trial(req), nil
}

func (g *generator) Close(context.Context) error { return nil }

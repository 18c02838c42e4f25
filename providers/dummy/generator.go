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
			"capacity":     number(1e6, "Frames per second that the switch forwards, all directions together, with one flow.", positive),
			"byte_rate":    number(0, "Bytes per second that it forwards at most, frames with FCS. 0: no limit.", notNegative),
			"tester_rate":  number(20e6, "Frames per second and direction that the tester can send. A greater offered load makes the trial INVALID.", positive),
			"noise":        number(0, "Standard deviation of the capacity from trial to trial, as a ratio.", ratio),
			"loss":         number(0, "Ratio of frames lost whatever the load.", ratio),
			"flow_penalty": number(0, "Ratio of the capacity that each factor of ten in flows takes away.", ratio),
			"latency":      number(10000, "Nanoseconds through the empty switch.", positive),
			"seed": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1), Description: "Seed of the noise; a whole number.",
				Validate: func(v cty.Value) error {
					if f := v.AsBigFloat(); !f.IsInt() || f.Sign() < 0 {
						return errors.New("it must be a whole number, 0 or more")
					}
					return nil
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
	return &generator{model{
		capacity: num("capacity"), byteRate: num("byte_rate"), testerRate: num("tester_rate"), noise: num("noise"), loss: num("loss"),
		flowPenalty: num("flow_penalty"), latency: num("latency"), rand: rand.New(rand.NewPCG(uint64(seed), 0)),
	}}, nil
}

// Sweep has nothing to end.
func (Generator) Sweep(context.Context, providers.Host, string) error { return nil }

type generator struct{ model model }

func (g *generator) Abilities() providers.Abilities {
	return providers.Abilities{RateControl: true, Bidirectional: true, Latency: true, Signed: true, Describe: "dummy: a model, no traffic"}
}

func (g *generator) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	if err := ctx.Err(); err != nil {
		return providers.TrialResult{}, err
	}
	return g.model.trial(req), nil
}

func (g *generator) Close(context.Context) error { return nil }

// Package dummy is a traffic generator without traffic: a model of a switch with a set capacity, noise and latency, for trying
// methods, configurations and reports without any hardware. Its trials take no time.
//
// The model is pure and deterministic: the same seed and the same trials give the same numbers.
package dummy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"plumb/providers"
)

// model is the switch and the tester. Rates are frames per second and direction, times nanoseconds.
type model struct {
	capacity    float64 // forwarded at 64-byte frames and one flow
	byteRate    float64 // forwarded bytes per second at most, whatever the frame size; 0: no limit
	testerRate  float64 // sent at most
	noise       float64 // standard deviation of the capacity between trials, as a ratio
	loss        float64 // of every frame, whatever the load
	flowPenalty float64 // of the capacity, for each factor of ten in flows
	latency     float64 // of an empty switch
	rand        *rand.Rand
}

// trial is what one trial counts.
func (m *model) trial(req providers.TrialRequest) providers.TrialResult {
	res := providers.TrialResult{Duration: req.Duration}
	directions := 1
	if req.Bidirectional {
		directions = 2
	}
	seconds := req.Duration.Seconds()
	for range directions {
		d := providers.Direction{Offered: req.Load}
		rate := req.Load
		if rate == 0 || rate > m.testerRate {
			rate = m.testerRate
		}
		if req.Load > m.testerRate {
			res.Health = append(res.Health, fmt.Sprintf("the tester reached %.0f of %.0f frames/s", m.testerRate, req.Load))
		}
		capacity := m.capacityAt(req.Traffic, directions)
		if req.Frames > 0 {
			// A few frames find an empty switch.
			d.Sent, rate, capacity = uint64(req.Frames), 1, math.Inf(1)
		} else {
			d.Sent = uint64(rate * seconds)
		}
		kept := math.Min(1, capacity/rate)
		d.Received = m.survivors(uint64(float64(d.Sent) * kept))
		d.Latency = m.delays(math.Min(1, rate/capacity), d.Received)
		res.Directions = append(res.Directions, d)
	}
	if res.Duration == 0 {
		res.Duration = time.Millisecond
	}
	return res
}

// capacityAt is the forwarding rate for a kind of traffic, with the noise of one trial. Both directions share it.
func (m *model) capacityAt(t providers.Traffic, directions int) float64 {
	c := m.capacity
	if m.byteRate > 0 {
		c = math.Min(c, m.byteRate/float64(t.FrameSize))
	}
	if t.Flows > 1 {
		c *= math.Max(0.01, 1-m.flowPenalty*math.Log10(float64(t.Flows)))
	}
	c *= math.Max(0.01, 1+m.noise*m.rand.NormFloat64())
	return c / float64(directions)
}

// survivors takes the loss that does not depend on load away, by a normal approximation of the binomial distribution.
func (m *model) survivors(n uint64) uint64 {
	if m.loss == 0 || n == 0 {
		return n
	}
	mean := float64(n) * m.loss
	lost := math.Round(mean + math.Sqrt(mean*(1-m.loss))*m.rand.NormFloat64())
	return n - uint64(math.Min(float64(n), math.Max(0, lost)))
}

// delays grow with the load as in a queue with one server (M/M/1: 1/(1-load)), up to a full queue.
func (m *model) delays(load float64, frames uint64) *providers.Latency {
	if frames == 0 {
		return nil
	}
	wait := m.latency * math.Min(1000, 1/math.Max(0.001, 1-load))
	at := func(quantile float64) float64 { return m.latency + (wait-m.latency)*-math.Log(1-quantile) }
	return &providers.Latency{Samples: frames, Min: m.latency, P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: at(0.9999)}
}

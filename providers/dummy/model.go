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

// model is the switch and the tester. Rates are frames per second and direction.
type model struct {
	capacity      float64 // forwarded at 64-byte frames and one flow
	byteRate      float64 // forwarded bytes per second at most, whatever the frame size; 0: no limit
	testerRate    float64 // sent at most, and within bursts
	noise         float64 // standard deviation of the capacity between trials, as a ratio
	drift         float64 // of the capacity from trial to trial, as a ratio; below 0 it falls
	loss          float64 // of every frame, whatever the load
	flowPenalty   float64 // of the capacity, for each factor of ten in flows
	latency       float64 // of an empty switch, nanoseconds
	kneeWidth     float64 // of the capacity, where a soft knee begins below it; 0: a step
	inversionFrom float64 // loads from here ...
	inversionTo   float64 // ... to below here lose inversionLoss though greater ones may not; equal: none
	inversionLoss float64
	buffer        float64 // frames, each direction; 0: none in a stream, no end in a burst of a given number of frames
	recovery      time.Duration
	outage        time.Duration // of a reset
	refuses       bool          // a full queue refuses frames (Unsent) instead of dropping them
	fault         string        // what is wrong with every faultEvery-th trial
	faultEvery    int
	rand          *rand.Rand
	trials        int // made so far
}

// recoveryLoss is the ratio of frames lost in the time after an overload.
const recoveryLoss = 0.1

// trial is what one trial counts.
func (m *model) trial(req providers.TrialRequest) providers.TrialResult {
	m.trials++
	directions := 1
	if req.Bidirectional {
		directions = 2
	}
	var res providers.TrialResult
	for range directions {
		d, health := m.stream(req, m.capacityAt(req.Traffic, directions))
		res.Directions, res.Health = append(res.Directions, d), append(res.Health, health...)
	}
	res.Duration = req.Duration
	for _, s := range req.Steps {
		res.Duration += s.Duration
	}
	if req.Frames > 0 {
		res.Duration = max(time.Millisecond, seconds(float64(req.Frames)/m.testerRate))
	}
	if m.faultEvery > 0 && m.trials%m.faultEvery == 0 {
		m.spoil(&res)
	}
	return res
}

// stream is one direction of a trial.
func (m *model) stream(req providers.TrialRequest, capacity float64) (providers.Direction, []string) {
	d := providers.Direction{Offered: req.Load}
	var health []string
	var now, lastLoss, queue, busiest float64 // seconds, frames, and the greatest load over the capacity
	var lost float64
	recovering := false
	slices := newSlices(req)
	for _, s := range append([]providers.Step{{Load: req.Load, Duration: req.Duration}}, req.Steps...) {
		rate, length := s.Load, s.Duration.Seconds()
		if rate == 0 || rate > m.testerRate {
			if rate > 0 {
				health = append(health, fmt.Sprintf("the tester reached %.0f of %.0f frames/s", m.testerRate, rate))
			}
			rate = m.testerRate
		}
		sent := math.Floor(rate * length)
		if req.Frames > 0 {
			sent, length = float64(req.Frames), float64(req.Frames)/rate
		}
		excess := sent * (1 - m.forwarded(rate, capacity)/rate)
		if req.Burst > 1 {
			whole := math.Floor(sent / float64(req.Burst))
			excess = math.Max(excess, whole*m.overflow(float64(req.Burst), capacity)+m.overflow(sent-whole*float64(req.Burst), capacity))
		}
		gone := 0.0
		switch {
		case req.Frames > 0 && m.buffer == 0: // a few frames find an empty switch
		case req.Burst > 1 && rate <= capacity: // the queue is empty again before each burst
			gone = excess
		default:
			gone = math.Max(0, excess-(m.buffer-queue))
			queue = math.Max(0, math.Min(m.buffer, queue+excess-math.Max(0, capacity-rate)*length))
		}
		overloaded := gone > 0
		until := length // of what is lost in this step for a reason
		if overloaded {
			lastLoss = now + length
		}
		if recovering && !overloaded && m.recovery > 0 {
			t := math.Min(length, m.recovery.Seconds())
			gone += rate * t * recoveryLoss
			until, lastLoss = t, now+t
		}
		recovering = overloaded
		if rate >= m.inversionFrom && rate < m.inversionTo {
			gone = math.Max(gone, sent*m.inversionLoss)
			until, lastLoss = length, now+length
		}
		gone = math.Min(sent, math.Ceil(gone-1e-6))
		slices.spread(now, now+until, gone)
		if random := m.random(sent - gone); random > 0 {
			gone += random
			slices.spread(now, now+length, random)
			lastLoss = math.Max(lastLoss, now+length*random/(random+1))
		}
		d.Sent, lost, busiest = d.Sent+uint64(sent), lost+gone, math.Max(busiest, rate/capacity)
		now += length
	}
	if after := req.DisturbAfter.Seconds(); req.Disturb != nil || after > 0 {
		t := math.Min(m.outage.Seconds(), math.Max(0, now-after))
		if t > 0 {
			n := math.Ceil(t / now * (float64(d.Sent) - lost))
			slices.spread(after, after+t, n)
			lost += n
			lastLoss = math.Max(lastLoss, after+t)
		}
		if after+t < now { // else nothing came back, so no gap ended
			d.Outage, d.OutageAt = pointer(seconds(t)), pointer(seconds(after))
		}
	}
	d.Received = d.Sent - uint64(math.Min(lost, float64(d.Sent)))
	if m.refuses {
		d.Unsent, d.Sent = d.Sent-d.Received, d.Received
	}
	if lost > 0 {
		d.LastLoss = pointer(seconds(lastLoss))
	}
	if req.Frames > 0 && m.buffer == 0 {
		busiest = 0
	}
	d.Latency = m.delays(math.Min(1, busiest), d.Received)
	d.LossSlices = slices.counts
	return d, health
}

// slices are the frames lost over time.
type slices struct {
	length float64 // seconds
	counts []uint64
}

// newSlices has no counts when none are asked for.
func newSlices(req providers.TrialRequest) slices {
	if req.Slice <= 0 || req.Frames > 0 {
		return slices{}
	}
	whole := req.Duration
	for _, s := range req.Steps {
		whole += s.Duration
	}
	return slices{req.Slice.Seconds(), make([]uint64, (whole+req.Slice-1)/req.Slice)}
}

// spread puts n frames, a whole number, evenly between two times: few of them stand far apart.
func (s slices) spread(from, to, n float64) {
	if len(s.counts) == 0 || n <= 0 {
		return
	}
	at := func(k float64) int { // of the k-th frame
		return max(0, min(len(s.counts)-1, int((from+(to-from)*(k+0.5)/n)/s.length)))
	}
	for k := 0.0; k < n; {
		i := at(k)
		// The frames of this slice, found by where the next one begins.
		next := math.Min(n, math.Max(k+1, math.Ceil(n*((float64(i+1)*s.length-from)/(to-from))-0.5)))
		if i == len(s.counts)-1 {
			next = n
		}
		s.counts[i] += uint64(next - k)
		k = next
	}
}

// forwarded is the rate that comes through at an offered one, of a queue without end: a step, or a knee that bends from rate to capacity.
func (m *model) forwarded(rate, capacity float64) float64 {
	knee := capacity * (1 - m.kneeWidth)
	if rate <= knee || m.kneeWidth == 0 {
		return math.Min(rate, capacity)
	}
	rest := capacity - knee
	return knee + rest*-math.Expm1(-(rate-knee)/rest)
}

// overflow is the frames of a burst that the buffer does not hold while the rest is forwarded.
func (m *model) overflow(burst, capacity float64) float64 {
	if m.buffer == 0 {
		return 0
	}
	return math.Max(0, burst*(1-math.Min(1, capacity/m.testerRate))-m.buffer)
}

// spoil is a trial that must not count, or must not be believed.
func (m *model) spoil(res *providers.TrialResult) {
	d := &res.Directions[0]
	d.LossSlices = nil // they would not add up
	switch m.fault {
	case "queue":
		res.Health = append(res.Health, "the tester's receive queue was full")
		d.RxDrops = d.Received / 10
		d.Received -= d.RxDrops
	case "link":
		res.Health = append(res.Health, "the link went down and came up again")
		d.Received /= 2
	case "slow": // and does not know it
		d.Sent = d.Sent * 8 / 10
		d.Received = min(d.Received, d.Sent)
	case "counters":
		d.Received = d.Sent + d.Sent/10 + 1
	}
}

// capacityAt is the forwarding rate for a kind of traffic, with the noise and the drift of one trial. Both directions share it.
func (m *model) capacityAt(t providers.Traffic, directions int) float64 {
	c := m.capacity
	if m.byteRate > 0 {
		c = math.Min(c, m.byteRate/float64(t.FrameSize))
	}
	if t.Flows > 1 {
		c *= math.Max(0.01, 1-m.flowPenalty*math.Log10(float64(t.Flows)))
	}
	c *= math.Max(0.01, 1+m.noise*m.rand.NormFloat64())
	c *= math.Max(0.01, 1+m.drift*float64(m.trials-1))
	return c / float64(directions)
}

// random is how many of n frames are lost whatever the load: binomial, by Poisson's distribution where few are expected, else by the normal one.
func (m *model) random(n float64) float64 {
	mean := n * m.loss
	switch {
	case mean <= 0:
		return 0
	case mean < 30:
		k := 0.0
		for p := m.rand.ExpFloat64(); p < mean; p += m.rand.ExpFloat64() {
			k++
		}
		return math.Min(n, k)
	}
	return math.Min(n, math.Max(0, math.Round(mean+math.Sqrt(mean*(1-m.loss))*m.rand.NormFloat64())))
}

// delays grow with the load as in a queue with one server (M/M/1: the wait is distributed exponentially, its mean as 1/(1-load)), up to a full queue.
func (m *model) delays(load float64, frames uint64) *providers.Latency {
	if frames == 0 {
		return nil
	}
	scale := m.latency*math.Min(1000, 1/math.Max(0.001, 1-load)) - m.latency
	at := func(quantile float64) float64 { return m.latency + scale*-math.Log(1-quantile) }
	l := &providers.Latency{Samples: frames, Min: m.latency, P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: at(0.9999), Mean: m.latency + scale}
	// The difference of two independent waits has Laplace's distribution.
	tail := func(beyond float64) float64 { return scale * -math.Log(2*beyond) }
	l.PDV, l.Jitter = l.P999-l.Min, scale
	l.IPDV = &providers.IPDV{Min: -tail(1e-4), P001: -tail(1e-3), P999: tail(1e-3), Max: tail(1e-4)}
	return l
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func pointer[T any](v T) *T { return &v }

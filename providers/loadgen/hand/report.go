package hand

import (
	"plumb/providers"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/frame"
	"plumb/providers/loadgen/worker"
)

// wireOverhead is what a frame has on a wire besides itself, in bytes: preamble, start of frame delimiter and the inter-frame gap (IEEE 802.3).
const wireOverhead = 20

// Report is what was sent and what came back. Rates are per second of the stream.
type Report struct {
	FrameSize   int        `json:"frame_size"` // bytes with FCS; of a mix the mean
	Interrupted bool       `json:"interrupted"`
	Seconds     float64    `json:"seconds"`
	Directions  []OneWay   `json:"directions"`
	Behind      uint64     `json:"behind"`          // frames by which the tester stayed below the rate because its threads did not run
	LongestStop float64    `json:"longest_stop_us"` // of a thread
	LinkChanges uint64     `json:"link_changes"`
	Health      []string   `json:"health"` // why the counts cannot be trusted; empty: they can
	Notes       []string   `json:"notes"`
	Ports       []PortNote `json:"ports"`
}

// PortNote is a port as it was opened.
type PortNote struct {
	Port string `json:"port"` // as it was asked for: "af_xdp:veth0@ns1"
	worker.PortInfo
}

// OneWay is one direction.
type OneWay struct {
	From int `json:"from"` // indices of Ports
	To   int `json:"to"`

	Offered    float64 `json:"offered_fps"` // 0: as fast as possible
	Sent       uint64  `json:"sent"`
	Unsent     uint64  `json:"not_sent"` // due, and not taken by the port
	Received   uint64  `json:"received"`
	Lost       uint64  `json:"lost"` // of what was sent and, at an offered rate, of what the port did not take
	LossRatio  float64 `json:"loss_ratio"`
	Duplicated uint64  `json:"duplicated"`
	Reordered  uint64  `json:"out_of_order"`
	Surplus    uint64  `json:"surplus"`  // frames that are not of this stream
	RxDrops    uint64  `json:"rx_drops"` // lost by the tester: its receiving ring was full

	TxRate float64 `json:"sent_fps"`
	RxRate float64 `json:"received_fps"`
	TxL1   float64 `json:"sent_l1_bps"` // what the frames would take on a wire
	RxL1   float64 `json:"received_l1_bps"`

	Latency *Latency `json:"latency_us"` // null: nothing that was sampled came back
}

// Latency in microseconds.
type Latency struct {
	Samples uint64  `json:"samples"`
	Min     float64 `json:"min"`
	Mean    float64 `json:"mean"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	P999    float64 `json:"p99_9"`
	Max     float64 `json:"max"`
	Jitter  float64 `json:"jitter"`
	PDV     float64 `json:"pdv"`
	IPDV    *IPDV   `json:"ipdv"` // null: not measured
}

// IPDV in microseconds (RFC 8219 section 7.3.2).
type IPDV struct {
	Min  float64 `json:"min"`
	P001 float64 `json:"p0_1"`
	P50  float64 `json:"p50"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func (s *session) report(res engine.Result, interrupted bool) *Report {
	r := &Report{
		FrameSize: s.Traffic.FrameSize, Interrupted: interrupted, Seconds: res.Duration.Seconds(), Behind: res.Behind,
		LongestStop: float64(res.LongestStop.Nanoseconds()) / 1e3, LinkChanges: res.LinkChanges,
		Health: append([]string{}, res.Health...), Notes: append([]string{}, res.Notes...),
	}
	if s.Traffic.Sizes != nil {
		r.FrameSize = frame.Mean(s.Traffic.Sizes)
	}
	for i, p := range s.ports {
		r.Ports = append(r.Ports, PortNote{s.Ports[i].String(), worker.Info(s.Ports[i], p)})
	}
	for i, d := range res.Directions {
		w := oneWay(d, r.Seconds, float64(r.FrameSize+wireOverhead)*8)
		w.From, w.To = s.req.Streams[i].From, s.req.Streams[i].To
		r.Directions = append(r.Directions, w)
	}
	return r
}

func oneWay(d providers.Direction, seconds, bits float64) OneWay {
	w := OneWay{Offered: d.Offered, Sent: d.Sent, Unsent: d.Unsent, Received: d.Received, Duplicated: d.Duplicated, Reordered: d.Reordered, Surplus: d.Surplus, RxDrops: d.RxDrops}
	due := d.Sent
	if d.Offered > 0 { // at full speed what the port does not take only says that it is the limit
		due += d.Unsent
	}
	w.Lost = due - min(due, d.Received)
	if due > 0 {
		w.LossRatio = float64(w.Lost) / float64(due)
	}
	if seconds > 0 {
		w.TxRate, w.RxRate = float64(d.Sent)/seconds, float64(d.Received)/seconds
		w.TxL1, w.RxL1 = w.TxRate*bits, w.RxRate*bits
	}
	if l := d.Latency; l != nil && l.Samples > 0 {
		const us = 1e3 // ns
		w.Latency = &Latency{l.Samples, l.Min / us, l.Mean / us, l.P50 / us, l.P90 / us, l.P99 / us, l.P999 / us, l.Max / us, l.Jitter / us, l.PDV / us, nil}
		if v := l.IPDV; v != nil {
			w.Latency.IPDV = &IPDV{v.Min / us, v.P001 / us, v.P50 / us, v.P999 / us, v.Max / us}
		}
	}
	return w
}

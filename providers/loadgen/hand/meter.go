package hand

import (
	"sync/atomic"

	"plumb/providers/loadgen/port"
)

// Totals is what all ports have sent and received: all frames, also those that are no test frames.
type Totals struct{ Sent, Received uint64 }

// meter counts while a stream runs, for people who watch. It adds once for each batch.
type meter struct{ sent, received atomic.Uint64 }

func (m *meter) totals() Totals { return Totals{m.sent.Load(), m.received.Load()} }

func (m *meter) wrap(ports []port.Port) []port.Port {
	out := make([]port.Port, len(ports))
	for i, p := range ports {
		w := &metered{Port: p}
		for q := range p.Queues() {
			w.tx = append(w.tx, &meteredTx{p.Tx(q), &m.sent})
			w.rx = append(w.rx, &meteredRx{p.Rx(q), &m.received})
		}
		out[i] = w
	}
	return out
}

type metered struct {
	port.Port
	tx []*meteredTx
	rx []*meteredRx
}

func (m *metered) Tx(q int) port.TxQueue { return m.tx[q] }
func (m *metered) Rx(q int) port.RxQueue { return m.rx[q] }

type meteredTx struct {
	port.TxQueue
	sent *atomic.Uint64
}

func (t *meteredTx) Submit(n int) {
	t.TxQueue.Submit(n)
	t.sent.Add(uint64(n))
}

type meteredRx struct {
	port.RxQueue
	received *atomic.Uint64
}

func (r *meteredRx) Receive(n int) [][]byte {
	f := r.RxQueue.Receive(n)
	if len(f) > 0 {
		r.received.Add(uint64(len(f)))
	}
	return f
}

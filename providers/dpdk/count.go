package dpdk

import (
	"context"
	"fmt"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/marked"
)

// Count reads the ports of every process through its telemetry and adds them up, and asks its console for the frames that it dropped itself because
// a transmit queue was full: those are counted by the forwarding engine, not by the port. A process that has ended is an error: its counters are
// gone. Resets of a link are not counted by DPDK.
func (t *Testpmd) Count(ctx context.Context, h providers.Host, of []providers.Subject) ([]providers.Counters, error) {
	if h == nil {
		return nil, errNoHost
	}
	out := make([]providers.Counters, len(of))
	for i, s := range of {
		sum, pid, err := sumPorts(ctx, h.Conn(), attr.Text(s.Value, "file_prefix"))
		if err != nil {
			return nil, fmt.Errorf("count frames of %s: %w", s.Addr, err)
		}
		out[i] = providers.Counters{Rx: sum.Rx, Tx: sum.Tx, RxBytes: sum.RxBytes, TxBytes: sum.TxBytes, Through: true,
			Drops: map[string]uint64{"rx_missed": sum.Missed, "rx_errors": sum.RxErr, "rx_nombuf": sum.NoMbuf, "tx_errors": sum.TxErr}}
		dropped, known, err := forwardDrops(ctx, h.Conn(), pid)
		if err != nil {
			return nil, fmt.Errorf("count frames of %s: %w", s.Addr, err)
		}
		if known {
			out[i].Drops["tx_queue_full"] = dropped
		}
	}
	return out, nil
}

// sumPorts adds up the ports of a process, and says which process that is.
func sumPorts(ctx context.Context, conn providers.Conn, prefix string) (sum stats, pid int, err error) {
	t, err := dialTelemetry(ctx, conn, prefix)
	if err != nil {
		return sum, 0, err
	}
	defer t.close()
	ids, err := t.ports(ctx)
	if err != nil {
		return sum, 0, err
	}
	for _, id := range ids {
		s, err := t.stats(ctx, id)
		if err != nil {
			return sum, 0, err
		}
		sum = stats{sum.Rx + s.Rx, sum.Tx + s.Tx, sum.RxBytes + s.RxBytes, sum.TxBytes + s.TxBytes, sum.Missed + s.Missed, sum.RxErr + s.RxErr, sum.TxErr + s.TxErr, sum.NoMbuf + s.NoMbuf}
	}
	return sum, t.pid, nil
}

// forwardDrops asks the console of a process of ours what its forwarding engine has dropped since it was started. Not known: the process has no
// folder of ours.
func forwardDrops(ctx context.Context, conn providers.Conn, pid int) (dropped uint64, known bool, err error) {
	name := fmt.Sprintf("/proc/%d/environ", pid)
	files, err := conn.ReadFiles(ctx, name)
	if err != nil {
		return 0, false, err
	}
	var m providers.Mark
	for _, e := range fields(files[name]) {
		if v, ok := strings.CutPrefix(e, "PLUMB_TESTBED="); ok {
			m.Testbed = v
		} else if v, ok := strings.CutPrefix(e, "PLUMB_ADDRESS="); ok {
			m.Address = v
		}
	}
	in := &instance{marked.Process{Conn: conn, Mark: m, Dir: folder(m.Testbed, m.Address)}}
	if found, err := in.Find(ctx); err != nil || found != pid {
		return 0, false, err
	}
	answer, err := in.order(ctx, "show fwd stats all")
	if err != nil {
		return 0, false, err
	}
	dropped, known = txDropped(answer)
	return dropped, known, nil
}

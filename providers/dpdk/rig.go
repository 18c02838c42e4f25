package dpdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plumb/providers"
	"plumb/providers/internal/pause"
)

// rig is the open generator.
type rig struct {
	log    func(string)
	tx, rx *side
	shape  shape
	now    clock
	about  string // "DPDK 22.11.11"
}

// side is one of the two processes.
type side struct {
	*instance
	spec spec
}

// shape is what of the traffic is fixed by the command line: another one needs other processes.
type shape struct {
	flows int
	jumbo int // longest frame in bytes with FCS when it is more than Ethernet's 1518; else 0
	mac   string
}

func shapeOf(t providers.Traffic) shape {
	s := shape{flows: max(1, t.Flows), mac: t.SrcMAC}
	if t.FrameSize > 1518 {
		s.jumbo = t.FrameSize
	}
	return s
}

// clock is time as a trial sees it.
type clock struct {
	now  func() time.Time
	wait func(context.Context, time.Duration) error
}

func wallClock() clock { return clock{now: time.Now, wait: pause.For} }

// checkTraffic refuses what testpmd 22.11 cannot send.
func checkTraffic(t providers.Traffic, load float64) error {
	generated := t.Flows > 1 || t.Bidirectional
	switch {
	case t.Headers != "ipv4" && t.Headers != "udp":
		return fmt.Errorf("generator testpmd sends UDP over IPv4 and nothing else: it cannot make headers = %q", t.Headers)
	case len(t.Sizes) > 0:
		return errors.New("generator testpmd sends frames of one size: it cannot mix sizes")
	case len(t.VLANs) > 0 || t.VXLAN != nil:
		return errors.New("generator testpmd cannot add VLAN tags or tunnel headers")
	case t.SrcIP != "" || t.DstIP != "":
		return errors.New("generator testpmd has fixed IP addresses: leave src_ip and dst_ip out")
	case t.Flows > 1 && t.Vary != "" && t.Vary != "ip":
		return fmt.Errorf("generator testpmd tells flows apart by IP address only, not by vary = %q", t.Vary)
	case t.Flows > 1 && t.Order == "random":
		return errors.New("generator testpmd sends its flows in turn: it cannot send them in random order")
	case load > 0:
		return errors.New("generator testpmd has no rate control: it can only send as fast as it can")
	case t.FrameSize < 64 || t.FrameSize > 9600:
		return fmt.Errorf("generator testpmd cannot send frames of %d bytes: from 64 to 9600 it can", t.FrameSize)
	case t.Flows > 1 && t.Headers != "ipv4":
		return fmt.Errorf("generator testpmd tells flows apart by IP address only: it cannot make %d flows with headers = %q. Use headers = \"ipv4\", or one flow", t.Flows, t.Headers)
	case generated && (t.SrcMAC != "" || t.DstMAC != ""):
		return errors.New("generator testpmd has fixed MAC addresses with several flows or in both directions (00:01:02:03:04:00 to 00:01:02:03:04:01): leave src_mac and dst_mac out, or send one flow in one direction")
	}
	return nil
}

// checkTrial refuses what Abilities say that testpmd cannot do.
func checkTrial(req providers.TrialRequest) error {
	switch {
	case req.Burst > 1:
		return errors.New("generator testpmd cannot send bursts with pauses in between")
	case len(req.Steps) > 0:
		return errors.New("generator testpmd cannot change the load within a trial")
	case req.Disturb != nil:
		return errors.New("generator testpmd cannot tell how long nothing came back: it measures no reset")
	}
	return nil
}

// start starts both; when one fails, neither is left.
func (r *rig) start(ctx context.Context, sh shape) error {
	for i, s := range []*side{r.tx, r.rx} {
		s.spec.flows = int64(sh.flows)
		s.spec.mode = "rxonly"
		s.spec.ports[0].mac = ""
		if i == 0 {
			s.spec.mode, s.spec.ports[0].mac = "txonly", sh.mac
		}
		full := s.spec
		if sh.jumbo > 0 { // the buffer also has 128 bytes of headroom (RTE_PKTMBUF_HEADROOM)
			full.app = append([]string{fmt.Sprintf("--max-pkt-len=%d", sh.jumbo), fmt.Sprintf("--mbuf-size=%d", sh.jumbo+256)}, full.app...)
		}
		if err := s.start(ctx, full, r.log); err != nil {
			if undo := r.Close(context.WithoutCancel(ctx)); undo != nil {
				err = errors.Join(err, undo)
			}
			return err
		}
	}
	t, err := dialTelemetry(ctx, r.tx.Conn, r.tx.spec.prefix)
	if err == nil {
		r.about = t.version
		t.close()
		r.shape = sh
		return nil
	}
	return errors.Join(err, r.Close(context.WithoutCancel(ctx)))
}

// Close ends both processes.
func (r *rig) Close(ctx context.Context) error {
	return errors.Join(r.tx.stop(ctx, r.tx.spec), r.rx.stop(ctx, r.rx.spec))
}

// Abilities of testpmd.
func (r *rig) Abilities() providers.Abilities {
	return providers.Abilities{Bidirectional: true, MaxFlows: 1 << 24, Headers: []string{"ipv4", "udp"}, Describe: "dpdk-testpmd, " + r.about}
}

// reshape starts the processes anew when the traffic needs other ones.
func (r *rig) reshape(ctx context.Context, t providers.Traffic) error {
	sh := shapeOf(t)
	if sh == r.shape {
		return nil
	}
	r.log(fmt.Sprintf("restarting the generator for %d flows of %d bytes", sh.flows, t.FrameSize))
	if err := r.Close(ctx); err != nil {
		return err
	}
	return r.start(ctx, sh)
}

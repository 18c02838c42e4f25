package bench

import (
	"fmt"
	"strings"

	"plumb/providers"
)

// route is the way frames take in one direction: the hops as indices into the distinct subjects of the path, each with its role.
type route struct {
	direction int
	hops      []routeHop
}

type routeHop struct {
	name    string
	subject int // index into the counters
	role    Role
	mixed   bool // its counters also count another passage, so they cannot stand in a ledger
}

// routes works out which counter of which hop counts what. A path begins and ends outside the switch; a port entered from outside counts
// what it received, the next one what it sent, and a hop that passes frames on by itself stands outside between two ports. names and
// subject are by hop of the path, through by subject.
func routes(names []string, subject []int, through []bool, bidirectional bool) ([]route, error) {
	forward, err := follow(0, names, subject, through)
	if err != nil {
		return nil, err
	}
	out := []route{forward}
	if bidirectional {
		back, err := follow(1, reversed(names), reversed(subject), through)
		if err != nil {
			return nil, err
		}
		out = append(out, back)
	}
	used := map[string]int{}
	for _, r := range out {
		for _, h := range r.hops {
			used[h.key()]++
		}
	}
	for _, r := range out {
		for i := range r.hops {
			r.hops[i].mixed = used[r.hops[i].key()] > 1
		}
	}
	return out, nil
}

// key names the counters that a passage moves.
func (h routeHop) key() string { return fmt.Sprintf("%d %s", h.subject, h.role) }

func follow(direction int, names []string, subject []int, through []bool) (route, error) {
	r := route{direction: direction}
	inside := ""
	for i, s := range subject {
		h := routeHop{name: names[i], subject: s}
		switch {
		case through[s] && inside != "":
			return r, fmt.Errorf("the path goes from %s straight to %s; frames that came into the switch there have to leave it by a port first", inside, h.name)
		case through[s]:
			h.role = Through
		case inside == "":
			h.role, inside = Enter, h.name
		default:
			h.role, inside = Leave, ""
		}
		r.hops = append(r.hops, h)
	}
	if inside != "" {
		return r, fmt.Errorf("the path ends inside the switch: frames come in by %s, and no hop after it says by which port they leave", inside)
	}
	return r, nil
}

// seen is how many frames a hop counted going on its way: what left it, or what came in by an entering port.
func (h routeHop) seen(d []providers.Counters) uint64 {
	if h.role == Enter {
		return d[h.subject].Rx
	}
	return d[h.subject].Tx
}

// ledger writes the lines of one direction from what the counters moved in the trial. refused are frames that were due and that the device's full queue
// did not take; 0 at maximum load, where nothing is due. Hops whose counters are mixed are left out; what is lost there shows at the next line.
func (r route) ledger(generator string, d providers.Direction, refused uint64, moved []providers.Counters) []Hop {
	first := Hop{Name: generator, Direction: r.direction, Role: Sender, In: d.Sent + refused, Out: d.Sent, Lost: int64(refused)}
	if refused > 0 {
		first.Causes = map[string]uint64{"device_queue_full": refused}
	}
	lines := []Hop{first}
	for _, h := range r.hops {
		if h.mixed {
			continue
		}
		c := moved[h.subject]
		line := Hop{Name: h.name, Direction: r.direction, Role: h.role, In: h.seen(moved), Out: h.seen(moved), Causes: causes(h.role, c.Drops)}
		if h.role == Through {
			line.In = c.Rx
		}
		lines = append(lines, line)
	}
	end := Hop{Name: generator, Direction: r.direction, Role: Receiver, In: d.Received, Out: d.Received}
	if d.RxDrops > 0 {
		end.Causes = map[string]uint64{"tester_rx_drops": d.RxDrops}
	}
	lines = append(lines, end)
	for i := 1; i < len(lines); i++ {
		lines[i].Lost = int64(lines[i-1].Out) - int64(lines[i].Out)
		lines[i].Unexplained = lines[i].Lost
		for _, n := range lines[i].Causes {
			lines[i].Unexplained -= int64(n)
		}
	}
	return lines
}

// causes picks the drops that concern a passage: a port that frames come in by drops on receive, one that they leave by on send. A cause
// that names neither side is taken for both: it can only be this port's.
func causes(role Role, drops map[string]uint64) map[string]uint64 {
	var out map[string]uint64
	for name, n := range drops {
		rx, tx := strings.Contains(name, "rx"), strings.Contains(name, "tx")
		if n == 0 || role == Enter && tx && !rx || role == Leave && rx && !tx {
			continue
		}
		if out == nil {
			out = map[string]uint64{}
		}
		out[name] = n
	}
	return out
}

// moved is what each counter gained. A counter that went backwards is named: its object was made anew or its statistics reset. LinkResets is how often the link
// changed meanwhile; where that went backwards the object is another one, which the other counters tell.
func moved(names []string, before, after []providers.Counters) (d []providers.Counters, backwards []string) {
	d = make([]providers.Counters, len(after))
	for i, a := range after {
		b := before[i]
		sub := func(what string, from, to uint64) uint64 {
			if to < from {
				backwards = append(backwards, fmt.Sprintf("%s of %s went backwards, from %d to %d: it was reset or made anew during the trial", what, names[i], from, to))
				return 0
			}
			return to - from
		}
		d[i] = providers.Counters{Rx: sub("rx", b.Rx, a.Rx), Tx: sub("tx", b.Tx, a.Tx), RxBytes: sub("rx bytes", b.RxBytes, a.RxBytes),
			TxBytes: sub("tx bytes", b.TxBytes, a.TxBytes), Drops: map[string]uint64{}, Through: a.Through,
			LinkResets: a.LinkResets - min(a.LinkResets, b.LinkResets)}
		for _, cause := range sortedKeys(a.Drops) {
			d[i].Drops[cause] = sub(cause, b.Drops[cause], a.Drops[cause])
		}
	}
	return d, backwards
}

func reversed[T any](in []T) []T {
	out := make([]T, len(in))
	for i, v := range in {
		out[len(in)-1-i] = v
	}
	return out
}

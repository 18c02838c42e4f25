package network

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"plumb/providers"
)

// driverScript prints what ethtool tells of links: arguments are pairs of a namespace and a name. What a driver does not support says so in words.
const driverScript = `export LC_ALL=C
tell='for o in -g -l -a -c -k; do echo "=== $o"; ethtool "$o" "$1" 2>&1; done'
while [ $# -ge 2 ]; do
	echo "=== link $2 $1"
	if [ -n "$1" ]; then ip netns exec "$1" sh -c "$tell" sh "$2"; else sh -c "$tell" sh "$2"; fi
	shift 2
done
command -v ethtool >/dev/null || echo "=== missing"
echo "=== end"
`

// driver is what ethtool(8) tells of a link.
type driver struct {
	values   map[string]string  // settings by attribute: "ring_rx": "256", "pause_autoneg": "on"; none for what there is not
	most     map[string]string  // greatest values of rings and channels
	why      map[string]string  // what ethtool says of a kind of settings that there is not, by the kind: "ring"
	features map[string]feature // by the name that ethtool -k prints
	order    []string           // their names
}

// feature is an offload.
type feature struct {
	on     bool
	wanted bool // what it was set to; it may be off for want of another
	fixed  bool // by the driver
	single bool // not a group of others
}

// kinds of settings, by the option of ethtool that prints them.
func kinds() map[string]string {
	return map[string]string{"-g": "ring", "-l": "channels", "-a": "pause", "-c": "coalesce", "-k": "offloads"}
}

// driver asks ethtool about a link. Those who ask while a question is under way ask the next one together.
func (s *session) driver(ctx context.Context, e end) (*driver, error) {
	var c steps
	c.ethtool(e.space, words{e.name})
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	if d := s.answer(e, true); d != nil {
		return d, nil
	}
	s.ask.Lock()
	defer s.ask.Unlock()
	if d := s.answer(e, false); d != nil {
		return d, nil
	}
	s.asked.Lock()
	args, pending := []string{"sh", "-c", driverScript, "plumb-net-ethtool"}, s.pending
	s.pending = map[end]bool{}
	s.asked.Unlock()
	pending[e] = true
	for p := range pending {
		args = append(args, p.space, p.name)
	}
	res, err := s.host.Conn().Run(ctx, providers.Cmd{Args: args})
	if err != nil {
		return nil, fmt.Errorf("ask ethtool on %s: %w", s.host.Name(), err)
	}
	found, err := parseDrivers(string(res.Stdout))
	if err != nil {
		return nil, fmt.Errorf("ask ethtool on %s: %w", s.host.Name(), err)
	}
	s.asked.Lock()
	defer s.asked.Unlock()
	for k, d := range found {
		s.drivers[k] = d
	}
	if d := found[e]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("ask ethtool on %s: it says nothing of %s", s.host.Name(), e)
}

// answer is what is known of a link; where nothing is, it is noted that somebody wants to know.
func (s *session) answer(e end, note bool) *driver {
	s.asked.Lock()
	defer s.asked.Unlock()
	d := s.drivers[e]
	if d == nil && note {
		s.pending[e] = true
	}
	return d
}

func parseDrivers(out string) (map[end]*driver, error) {
	found := map[end]*driver{}
	var d *driver
	option, ended := "", false
	var text strings.Builder
	finish := func() {
		if d != nil && option != "" {
			d.parse(option, text.String())
		}
		option = ""
		text.Reset()
	}
	for line := range strings.Lines(out) {
		head, ok := strings.CutPrefix(line, "=== ")
		if !ok {
			text.WriteString(line)
			continue
		}
		finish()
		switch w := strings.Fields(head); {
		case len(w) >= 2 && w[0] == "link":
			e := end{name: w[1]}
			if len(w) > 2 {
				e.space = w[2]
			}
			d = &driver{values: map[string]string{}, most: map[string]string{}, why: map[string]string{}, features: map[string]feature{}}
			found[e] = d
		case len(w) == 1 && w[0] == "missing":
			return nil, errors.New("there is no ethtool(8): install ethtool")
		case len(w) == 1 && w[0] == "end":
			ended = true
		case len(w) == 1:
			option = w[0]
		}
	}
	if !ended {
		return nil, errors.New("the answer is cut off")
	}
	return found, nil
}

// parse reads one table of ethtool: NAME: VALUE, where n/a stands for what there is not.
func (d *driver) parse(option, text string) {
	kind := kinds()[option]
	if kind == "" {
		return
	}
	into := d.values
	any := false
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key = strings.TrimRight(key, " "); {
		case !ok:
		case strings.HasPrefix(key, "Pre-set maximums"):
			into = d.most
		case strings.HasPrefix(key, "Current hardware settings"):
			into = d.values
		case strings.HasSuffix(key, " for"), value == "":
		case kind == "offloads":
			any = d.feature(key, value) || any
		case key == "Adaptive RX": // "off  TX: on"
			rx, tx, _ := strings.Cut(value, "TX:")
			any = set(into, "coalesce_adaptive_rx", rx) || any
			any = set(into, "coalesce_adaptive_tx", tx) || any
		default:
			if name := attributeOf(kind, key); name != "" {
				any = set(into, name, value) || any
			}
		}
	}
	if !any {
		d.why[kind] = saying(text)
	}
}

// set keeps a value that there is.
func set(into map[string]string, name, value string) bool {
	value = strings.TrimSpace(value)
	if value == "" || value == "n/a" {
		return false
	}
	into[name] = value
	return true
}

// attributeOf is the attribute that a line of a table is about; "" for none.
func attributeOf(kind, key string) string {
	for _, k := range knobs() {
		if k.kind == kind && k.shown == key {
			return k.attr
		}
	}
	return ""
}

// feature reads a line of ethtool -k: "tx-checksum-ipv4: off [fixed]", "tx-tcp-segmentation: off [requested on]"; members of a group are indented.
func (d *driver) feature(key, value string) bool {
	name := strings.TrimSpace(key)
	state, note, _ := strings.Cut(value, " ")
	if state != "on" && state != "off" || name == "" {
		return false
	}
	f := feature{on: state == "on", wanted: state == "on", fixed: strings.Contains(note, "[fixed]"), single: true}
	if strings.Contains(note, "[requested ") {
		f.wanted = !f.on
	}
	if strings.HasPrefix(key, "\t") || strings.HasPrefix(key, " ") {
		for i := len(d.order) - 1; i >= 0; i-- { // the group is the last one that is not indented
			if g := d.features[d.order[i]]; !strings.HasPrefix(d.order[i], "\t") {
				g.single = false
				d.features[d.order[i]] = g
				break
			}
		}
		d.order = append(d.order, "\t"+name)
	} else {
		d.order = append(d.order, name)
	}
	d.features[name] = f
	return true
}

// saying is what a tool said, in one line.
func saying(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, ":") && !strings.HasSuffix(line, "n/a") {
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		return "it has none"
	}
	return strings.Join(out[:min(len(out), 3)], "; ")
}

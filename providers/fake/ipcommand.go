package fake

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ipCall is one call of ip(8), or one line of a batch.
type ipCall struct {
	h      *host
	r      *run
	ns     string
	space  *space
	json   bool
	family int // bits of an address; 0: any
}

// ipError is what ip prints, and its status. A word that ip does not take ends it at once, also within a batch.
type ipError struct {
	text   string
	status int
	abort  bool
}

func (e ipError) Error() string { return e.text }

func kernelSays(format string, args ...any) error {
	return ipError{text: fmt.Sprintf(format, args...), status: 2}
}

func wrongWord(format string, args ...any) error {
	return ipError{text: fmt.Sprintf("Error: "+format+"\n", args...), status: 255, abort: true}
}

func noDevice(name string) error {
	return ipError{text: fmt.Sprintf("Cannot find device \"%s\"", name), status: 1}
}

// ip is ip(8), as far as Plumb uses it.
func ip(h *host, r *run) int {
	c := &ipCall{h: h, r: r, space: h.state.Network.Spaces[""]}
	batch, force := false, false
	args := r.args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		switch flag := args[0]; flag {
		case "-j", "-json":
			c.json = true
		case "-d", "-details":
		case "-force":
			force = true
		case "-4":
			c.family = 32
		case "-6":
			c.family = 128
		case "-b", "-batch", "-n", "-netns":
			if len(args) < 2 {
				return r.fail(255, "Command line is not complete. Try option \"help\"")
			}
			args = args[1:]
			if strings.HasPrefix(flag, "-b") {
				if batch = args[0] == "-"; !batch {
					return r.fail(1, "Cannot open file \"%s\" for reading: No such file or directory", args[0])
				}
				break
			}
			c.ns, c.space = args[0], h.state.Network.Spaces[args[0]]
			if c.space == nil || c.ns == "" {
				return r.fail(255, "Cannot open network namespace \"%s\": No such file or directory", c.ns)
			}
		default:
			return r.fail(255, "Option \"%s\" is unknown, try \"ip -help\".", flag)
		}
		args = args[1:]
	}
	if h.settings.Unprivileged && (batch || !slices.Contains(args, "show")) {
		return r.fail(2, "RTNETLINK answers: Operation not permitted")
	}
	status := 0
	if batch {
		status = c.batch(force)
	} else if err := c.do(args); err != nil {
		status = c.report(err)
	}
	if err := h.showLinks(); err != nil {
		return r.fail(1, "the fake host: %v", err)
	}
	return status
}

func (c *ipCall) report(err error) int {
	var e ipError
	if !errors.As(err, &e) {
		e = ipError{text: err.Error(), status: 1}
	}
	return c.r.fail(e.status, "%s", e.text)
}

func (c *ipCall) batch(force bool) int {
	status, n := 0, 0
	for line := range strings.Lines(string(c.r.stdin)) {
		n++
		words := batchWords(line)
		if len(words) == 0 {
			continue
		}
		err := c.do(words)
		if err == nil {
			continue
		}
		s := c.report(err)
		var e ipError
		if errors.As(err, &e) && e.abort {
			return s
		}
		fmt.Fprintf(&c.r.stderr, "Command failed -:%d\n", n)
		if status = 1; !force {
			break
		}
	}
	return status
}

// batchWords splits a line as ip does: '#' begins a comment wherever it stands, words may be in quotes of either kind, and nothing escapes anything.
func batchWords(line string) []string {
	line, _, _ = strings.Cut(line, "#")
	var out []string
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		if line == "" {
			return out
		}
		if q := line[0]; q == '"' || q == '\'' {
			word, rest, _ := strings.Cut(line[1:], string(q))
			out, line = append(out, word), rest
			continue
		}
		i := strings.IndexAny(line, " \t\r\n")
		if i < 0 {
			i = len(line)
		}
		out, line = append(out, line[:i]), line[i:]
	}
}

// do does one command.
func (c *ipCall) do(w []string) error {
	if len(w) == 0 {
		return wrongWord("nothing is asked for")
	}
	object, verb, rest := w[0], "show", w[1:]
	if len(rest) > 0 {
		verb, rest = rest[0], rest[1:]
	}
	is := func(full string, least int) bool { return strings.HasPrefix(full, object) && len(object) >= least }
	switch {
	case is("link", 1):
		return c.link(verb, rest)
	case is("address", 1):
		return c.address(verb, rest)
	case is("route", 1):
		return c.route(verb, rest)
	case is("neighbour", 1):
		return c.neighbour(verb, rest)
	case is("tuntap", 2):
		return c.tuntap(verb, rest)
	case is("netns", 2):
		return c.netns(verb, rest)
	}
	return ipError{text: fmt.Sprintf("Object \"%s\" is unknown, try \"ip help\".", object), status: 1}
}

func (c *ipCall) print(v []map[string]any) { c.r.printf("%s", jsonLine(v)) }

// options reads "KEY VALUE" words; those in flags have no value, and what is neither is the operand (after an optional "dev").
func options(w []string, operand string, flags ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(w); i++ {
		switch {
		case slices.Contains(flags, w[i]):
			out[w[i]] = "on"
		case out[operand] == "" && operand != "" && w[i] != "dev" && i == 0:
			out[operand] = w[i]
		case i+1 < len(w):
			out[w[i]] = w[i+1]
			i++
		default:
			out[w[i]] = ""
		}
	}
	return out
}

func (c *ipCall) link(verb string, w []string) error {
	switch verb {
	case "show":
		o := options(w, "dev")
		if name := o["dev"]; name != "" {
			if c.space.Links[name] == nil {
				return ipError{text: fmt.Sprintf("Device \"%s\" does not exist.", name), status: 1}
			}
			c.print([]map[string]any{c.h.showLink(c.space, name)})
			return nil
		}
		c.print(c.h.addressesOf(c.ns))
		return nil
	case "add":
		return c.linkAdd(w)
	case "del", "delete":
		name := options(w, "dev")["dev"]
		l := c.space.Links[name]
		switch {
		case l == nil:
			return noDevice(name)
		case l.Kind == "" || l.Kind == "loopback":
			return kernelSays("RTNETLINK answers: Operation not supported")
		}
		c.space.drop(c.h, name)
		return nil
	case "set":
		return c.linkSet(w)
	}
	return ipError{text: fmt.Sprintf("Command \"%s\" is unknown, try \"ip link help\".", verb), status: 255, abort: true}
}

// linkAdd is link add [dev] NAME [netns NS] [address MAC] [mtu N] [numtxqueues N] [numrxqueues N] type KIND [OPTIONS].
func (c *ipCall) linkAdd(w []string) error {
	at := slices.Index(w, "type")
	if at < 0 || at+1 >= len(w) {
		return wrongWord("Not enough information: \"type\" argument is required.")
	}
	kind, more := w[at+1], w[at+2:]
	if !slices.Contains([]string{"veth", "bridge"}, kind) {
		return kernelSays("Error: Unknown device type.")
	}
	s, name, l, err := c.newLink(w[:at], kind)
	if err != nil {
		return err
	}
	if kind == "bridge" {
		l.Data = map[string]string{"stp_state": "0", "ageing_time": "30000", "vlan_filtering": "0"}
		s.Links[name] = l
		return nil
	}
	if len(more) > 0 && more[0] == "peer" {
		more = more[1:]
	}
	ps, peerName, p, err := c.newLink(slices.DeleteFunc(slices.Clone(more), func(s string) bool { return s == "name" }), kind)
	if err != nil {
		return err
	}
	if ps == s && peerName == name {
		return kernelSays("RTNETLINK answers: File exists")
	}
	l.Peer, p.Peer = p.Index, l.Index
	s.Links[name], ps.Links[peerName] = l, p
	return nil
}

func (c *ipCall) newLink(w []string, kind string) (*space, string, *netLink, error) {
	o := options(w, "dev")
	s, name := c.space, o["dev"]
	if ns, ok := o["netns"]; ok {
		if s = c.h.state.Network.Spaces[ns]; s == nil || ns == "" {
			return nil, "", nil, wrongWord("argument \"%s\" is wrong: Invalid \"netns\" value", ns)
		}
	}
	if name == "" || len(name) > 15 || strings.ContainsAny(name, "/ :") {
		return nil, "", nil, wrongWord("argument \"%s\" is wrong: \"name\" not a valid ifname", name)
	}
	if s.Links[name] != nil {
		return nil, "", nil, kernelSays("RTNETLINK answers: File exists")
	}
	n := c.h.serial()
	l := &netLink{Index: n, Kind: kind, MAC: fmt.Sprintf("02:fa:4e:00:%02x:%02x", n>>8&255, n&255), MTU: 1500, TxQueues: 1, RxQueues: 1}
	if kind == "veth" {
		l.TxQueues, l.RxQueues, l.Ethtool = 2, 2, seedVeth() // one for each CPU
	}
	for key, to := range map[string]*int{"mtu": &l.MTU, "numtxqueues": &l.TxQueues, "numrxqueues": &l.RxQueues} {
		if v, ok := o[key]; ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				return nil, "", nil, wrongWord("argument \"%s\" is wrong: invalid \"%s\" value", v, key)
			}
			*to = n
		}
	}
	if v, ok := o["address"]; ok {
		l.MAC = strings.ToLower(v)
	}
	return s, name, l, nil
}

func (c *ipCall) linkSet(w []string) error {
	if len(w) > 0 && w[0] == "dev" {
		w = w[1:]
	}
	if len(w) == 0 {
		return wrongWord("Not enough of information: \"dev\" argument is required.")
	}
	name, w := w[0], w[1:]
	if len(w) > 0 && w[0] == "type" {
		return c.linkType(name, w[1:])
	}
	o := options(w, "", "up", "down", "nomaster")
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if key == "master" && c.space.Links[o[key]] == nil {
			return wrongWord("argument \"%s\" is wrong: Device does not exist", o[key])
		}
	}
	l := c.space.Links[name]
	if l == nil {
		return noDevice(name)
	}
	if len(w) > 1 && w[0] == "vf" {
		return c.linkFunction(l, w[1:])
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		v := o[key]
		switch key {
		case "mtu":
			n, err := strconv.Atoi(v)
			shown := c.h.showLink(c.space, name)
			switch {
			case err != nil:
				return wrongWord("argument \"%s\" is wrong: Invalid \"mtu\" value", v)
			case n < shown["min_mtu"].(int):
				return kernelSays("Error: mtu less than device minimum.")
			case shown["max_mtu"].(int) > 0 && n > shown["max_mtu"].(int):
				return kernelSays("Error: mtu greater than device maximum.")
			}
			l.MTU = n
		case "address":
			if len(v) != 17 || strings.Contains("13579bdf", v[1:2]) {
				return kernelSays("RTNETLINK answers: Cannot assign requested address")
			}
			if mac := strings.ToLower(v); l.MAC != mac {
				l.MAC = mac
				c.space.Neighbours = slices.DeleteFunc(c.space.Neighbours, func(n netNeighbour) bool { return n.Dev == name })
			}
		case "alias":
			l.Alias = v
		case "master":
			if c.space.Links[v].Kind != "bridge" {
				return kernelSays("RTNETLINK answers: Operation not supported")
			}
			l.Master = v
		case "nomaster":
			l.Master = ""
		case "promisc":
			l.Promisc = v == "on"
		case "allmulticast":
			l.AllMulti = v == "on"
		case "netns":
			s := c.h.state.Network.Spaces[v]
			if s == nil {
				return wrongWord("argument \"%s\" is wrong: Invalid \"netns\" value", v)
			}
			if s.Links[name] != nil {
				return kernelSays("RTNETLINK answers: File exists")
			}
			c.space.setDown(name)
			delete(c.space.Links, name)
			l.Addresses, l.Master = nil, ""
			s.Links[name] = l
		case "name":
			if c.space.Links[v] != nil {
				return kernelSays("RTNETLINK answers: File exists")
			}
			delete(c.space.Links, name)
			c.space.Links[v] = l
			for i := range c.space.Routes {
				if c.space.Routes[i].Dev == name {
					c.space.Routes[i].Dev = v
				}
			}
			for _, other := range c.space.Links {
				if other.Master == name {
					other.Master = v
				}
			}
			name = v
		case "up":
			if l.Up = true; l.Kind == "loopback" && len(l.Addresses) == 0 {
				l.Addresses = []netAddress{{Prefix: netip.MustParsePrefix("127.0.0.1/8")}, {Prefix: netip.MustParsePrefix("::1/128")}}
			}
		case "down":
			c.space.setDown(name)
		default:
			return wrongWord("either \"dev\" is duplicate, or \"%s\" is a garbage.", key)
		}
	}
	return nil
}

// linkType is link set dev NAME type bridge OPTIONS.
func (c *ipCall) linkType(name string, w []string) error {
	l := c.space.Links[name]
	if l == nil {
		return noDevice(name)
	}
	if len(w) == 0 || w[0] != l.Kind || l.Kind != "bridge" {
		return kernelSays("RTNETLINK answers: Operation not supported")
	}
	for key, v := range options(w[1:], "") {
		if _, ok := l.Data[key]; !ok {
			return wrongWord("bridge: unknown option \"%s\"?", key)
		}
		l.Data[key] = v
	}
	return nil
}

// tuntap is tuntap add dev NAME mode tap [user U] [group G] [vnet_hdr] [multi_queue].
func (c *ipCall) tuntap(verb string, w []string) error {
	o := options(w, "", "vnet_hdr", "multi_queue")
	name := o["dev"]
	old := c.space.Links[name]
	switch {
	case verb == "del" && old != nil && old.Kind == "tun":
		c.space.drop(c.h, name)
		return nil
	case verb != "add" || o["mode"] != "tap":
		return wrongWord("the fake host knows tuntap add ... mode tap and tuntap del")
	case old != nil && old.Kind == "tun" && (old.Data["multi_queue"] != "") == (o["multi_queue"] != ""):
		return ipError{text: "ioctl(TUNSETIFF): Device or resource busy", status: 1}
	case old != nil:
		return ipError{text: "ioctl(TUNSETIFF): Invalid argument", status: 1}
	}
	s, name, l, err := c.newLink([]string{"dev", name}, "tun")
	if err != nil {
		return err
	}
	l.Data = map[string]string{"user": account(o["user"]), "group": account(o["group"]), "vnet_hdr": o["vnet_hdr"], "multi_queue": o["multi_queue"]}
	if o["multi_queue"] != "" {
		l.TxQueues, l.RxQueues = 256, 256
	}
	s.Links[name] = l
	return nil
}

// account is a user or group as ip prints it: by its name, where it has one.
func account(id string) string {
	if name, ok := map[string]string{"0": "root", "65534": "nobody"}[id]; ok {
		return name
	}
	return id
}

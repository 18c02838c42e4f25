package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"

	"plumb/providers"
)

// checkCores finds cores that the host does not have and cores that are wanted twice.
func (h *hostClaims) checkCores() hcl.Diagnostics {
	var diags hcl.Diagnostics
	var have []int
	for _, c := range h.facts.CPUs {
		if c.Online {
			have = append(have, c.ID)
		}
	}
	slices.Sort(have)
	claims := all(h, func(c *providers.Claims) []providers.CoreClaim { return c.Cores })
	byCore := map[int][]claimed[providers.CoreClaim]{}
	var cores []int
	for _, c := range claims {
		var missing []int
		for _, core := range c.claim.Cores {
			if len(have) > 0 && !slices.Contains(have, core) {
				missing = append(missing, core)
				continue
			}
			if byCore[core] == nil {
				cores = append(cores, core)
			}
			byCore[core] = append(byCore[core], c)
		}
		if len(missing) > 0 {
			diags = append(diags, errorAt(c.by.at(c.claim.Path), "Host does not have this core", "%s wants %s for %s, and host.%s has %s.",
				c.by.addr, plural(len(missing), "core ", "cores ")+ranges(missing), c.claim.Use, h.name, plural(len(have), "only core ", "cores ")+ranges(have)))
		}
	}
	slices.Sort(cores)
	type pair struct{ a, b claimed[providers.CoreClaim] }
	clashes := map[string]*struct {
		pair
		cores []int
	}{}
	var order []string
	for _, core := range cores {
		list := byCore[core]
		for i, a := range list {
			for _, b := range list[i+1:] {
				if apart(a.by, b.by) || !a.claim.Polling && !b.claim.Polling || samePlace(a, b) {
					continue
				}
				if a.claim.Polling != b.claim.Polling && (a.claim.Shared || b.claim.Shared) {
					continue // what does not poll hardly disturbs, and sharing was accepted
				}
				key := fmt.Sprint(a.by.addr, "\x00", a.claim.Use, "\x00", b.by.addr, "\x00", b.claim.Use)
				if clashes[key] == nil {
					clashes[key] = &struct {
						pair
						cores []int
					}{pair: pair{a, b}}
					order = append(order, key)
				}
				clashes[key].cores = append(clashes[key].cores, core)
			}
		}
	}
	for _, key := range order {
		c := clashes[key]
		diags = append(diags, coreClash(h.name, c.a, c.b, c.cores))
	}
	return diags
}

// samePlace says that both claims come from one argument of one instance: a core that it lists twice is its own business.
func samePlace(a, b claimed[providers.CoreClaim]) bool {
	return a.by == b.by && a.claim.Path.Equals(b.claim.Path)
}

func coreClash(host string, a, b claimed[providers.CoreClaim], cores []int) *hcl.Diagnostic {
	what := fmt.Sprintf("%s of host.%s: %s (%s) and %s (%s)", plural(len(cores), "core ", "cores ")+ranges(cores), host, a.by.addr, a.claim.Use, b.by.addr, b.claim.Use)
	at := b.by.at(b.claim.Path)
	switch {
	case a.claim.Polling && b.claim.Polling && a.claim.Shared && b.claim.Shared:
		return warningAt(at, b.by.addr, "Cores are shared", "Both want %s. Both poll, so each gets about half of the core, and what is measured depends on the scheduler. Both say that this is accepted.", what)
	case a.claim.Polling && b.claim.Polling:
		return errorAt(at, "Core is claimed twice", "Both want %s. Both poll, so each would get about half of the core. Give one of them another core. Where there are too few, "+
			"and both have the argument, set share_cores = true on both.", what)
	}
	if a.claim.Polling {
		a, b = b, a
	}
	return warningAt(at, b.by.addr, "Polling core does other work too", "Both want %s. %s of %s polls and will be disturbed by %s.", what, b.claim.Use, b.by.addr, a.claim.Use)
}

// checkUnique finds what may occur only once.
func (h *hostClaims) checkUnique() hcl.Diagnostics {
	var diags hcl.Diagnostics
	first := map[[2]string]claimed[providers.Unique]{}
	for _, u := range all(h, func(c *providers.Claims) []providers.Unique { return c.Unique }) {
		key := [2]string{u.claim.Scope, u.claim.Value}
		other, taken := first[key]
		if !taken {
			first[key] = u
			continue
		}
		if apart(other.by, u.by) {
			continue
		}
		diags = append(diags, errorAt(u.by.at(u.claim.Path), "Used twice: "+u.claim.Scope, "Both %s and %s want, on host.%s, %s: %s. Only one of them can have it.",
			other.by.addr, u.by.addr, h.name, u.claim.Scope, u.claim.Value))
	}
	return diags
}

// checkNeeds finds what is needed and provided by nobody.
func (h *hostClaims) checkNeeds() hcl.Diagnostics {
	provided := map[string][]string{}
	for _, p := range all(h, func(c *providers.Claims) []providers.Named { return c.Provides }) {
		provided[p.claim.Kind] = append(provided[p.claim.Kind], p.claim.Name)
	}
	var diags hcl.Diagnostics
	for _, n := range all(h, func(c *providers.Claims) []providers.Named { return c.Needs }) {
		have := provided[n.claim.Kind]
		if slices.Contains(have, n.claim.Name) {
			continue
		}
		d := errorAt(n.by.at(n.claim.Path), "There is no such "+n.claim.Kind, "%s names %q, and nothing on host.%s provides a %s of that name.%s",
			n.by.addr, n.claim.Name, h.name, n.claim.Kind, suggest(n.claim.Name, have))
		if n.claim.Hint != "" {
			d.Detail += " " + n.claim.Hint
		}
		if n.claim.Summary != "" {
			d.Summary, d.Detail = n.claim.Summary, n.claim.Hint
		}
		if h.vague {
			d.Severity, d.Extra = hcl.DiagWarning, note{addr: n.by.addr}
			d.Detail += " Some names are known only after apply; perhaps it is one of them."
		}
		diags = append(diags, d)
	}
	return diags
}

// suggest is a sentence with the nearest of the names, or with those that there are.
func suggest(name string, have []string) string {
	have = slices.Compact(slices.Sorted(slices.Values(have)))
	best, at := "", max(2, len(name)/3)+1
	for _, h := range have {
		if isNumber(h) != isNumber(name) {
			continue // a port's number is a name for it, but nobody means it by t2
		}
		if d := levenshtein.Distance(name, h, nil); d < at {
			best, at = h, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(" Did you mean %q?", best)
	case len(have) > 0 && len(have) <= 12:
		return " There is " + strings.Join(have, ", ") + "."
	}
	return ""
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// checkSockets matches the halves of vhost-user connections.
func (h *hostClaims) checkSockets() hcl.Diagnostics {
	var diags hcl.Diagnostics
	bySocket := map[string][]claimed[providers.SocketEnd]{}
	var order []string
	for _, s := range all(h, func(c *providers.Claims) []providers.SocketEnd { return c.Sockets }) {
		if bySocket[s.claim.Socket] == nil {
			order = append(order, s.claim.Socket)
		}
		bySocket[s.claim.Socket] = append(bySocket[s.claim.Socket], s)
	}
	for _, socket := range order {
		ends := bySocket[socket]
		if len(ends) == 1 && !h.vague {
			e := ends[0]
			diags = append(diags, warningAt(e.by.at(e.claim.Path), e.by.addr, "vhost-user socket with one half", "Only %s uses socket %s of host.%s. %s",
				e.by.addr, socket, h.name, missingHalf(e.claim)))
		}
		for i, a := range ends {
			for _, b := range ends[i+1:] {
				if why := mismatch(a, b); why != "" && !apart(a.by, b.by) {
					diags = append(diags, errorAt(b.by.at(b.claim.Path), "vhost-user halves do not match", "%s and %s both use socket %s of host.%s, but %s.",
						a.by.addr, b.by.addr, socket, h.name, why))
				}
			}
		}
	}
	return diags
}

func missingHalf(e providers.SocketEnd) string {
	if e.Switch {
		return "It stays without a link until a VM, testpmd or generator attaches to it."
	}
	return "It needs a port of a switch on the same socket, or it will not come up."
}

func mismatch(a, b claimed[providers.SocketEnd]) string {
	x, y := a.claim, b.claim
	switch {
	case x.Switch && y.Switch:
		return "both are the switch's half. The other one is a VM, testpmd or generator"
	case !x.Switch && !y.Switch:
		return "neither is the switch's half"
	case x.Server && y.Server:
		return "both are the server, which makes the socket and listens. One has to be the client"
	case !x.Server && !y.Server:
		return "both are the client. One has to be the server, which makes the socket and listens"
	case x.Queues > 0 && y.Queues > 0 && x.Queues != y.Queues:
		return fmt.Sprintf("the one has %d queues and the other %d", x.Queues, y.Queues)
	}
	return ""
}

// plural chooses by number.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// ranges writes numbers as cpu lists do: 0-3,7.
func ranges(n []int) string {
	n = slices.Compact(slices.Sorted(slices.Values(n)))
	var out []string
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		if i == j {
			out = append(out, strconv.Itoa(n[i]))
		} else {
			out = append(out, strconv.Itoa(n[i])+"-"+strconv.Itoa(n[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

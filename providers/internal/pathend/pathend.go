// Package pathend finds out at which of a generator's ports a path begins and at which it ends.
package pathend

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// Assign says which port sends into a path's first hop and which receives behind its last. sockets are the ports' vhost-user sockets, one or two, "" for a port
// that is something else. A port whose socket is a hop's vhost_server_path belongs to that hop; when only one end tells, the other is at the other port, and
// when neither does, the first port sends. from and to are the same for a path that ends where it began, and with a single port.
func Assign(sockets []string, path []providers.Subject) (from, to int) {
	if len(sockets) < 2 {
		return 0, 0
	}
	if len(path) == 0 {
		return 0, 1
	}
	first, last := at(sockets, path[0]), at(sockets, path[len(path)-1])
	switch {
	case first < 0 && last < 0:
		return 0, 1
	case first < 0:
		return 1 - last, last
	case last < 0:
		return first, 1 - first
	}
	return first, last
}

// at is the port of a hop's socket; -1: it has none, or no port has that socket.
func at(sockets []string, hop providers.Subject) int {
	v := hop.Value
	if v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute("vhost_server_path") {
		return -1
	}
	path := v.GetAttr("vhost_server_path")
	if path.IsNull() || !path.IsKnown() || path.Type() != cty.String || path.AsString() == "" {
		return -1
	}
	return slices.Index(sockets, path.AsString())
}

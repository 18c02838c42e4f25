package hostkit

import (
	"fmt"

	"plumb/providers"
)

// NotRoot is the problem of a host that Plumb may not change. It is the same for every type, so that a plan says it once per host.
func NotRoot(host string) providers.Problem {
	return providers.Problem{Host: host, Summary: "Not root",
		Detail: fmt.Sprintf("Plumb does not run as root on %s, and only root may set hugepages, manage Open vSwitch and start DPDK: run it with sudo.", host)}
}

package fake

import (
	"fmt"
	"strconv"
)

// startStress is stress-ng: a parent with one process for each worker. A parent that is killed leaves its workers, as the real one does; a polite
// end takes them along. The workers' environment cannot be read: they write their titles over it.
func (h *host) startStress(p *process) error {
	for _, kind := range []string{"cpu", "vm", "cache"} {
		n, _ := strconv.Atoi(option(p.Args, "--"+kind))
		for range n {
			w, err := h.spawn([]string{"stress-ng-" + kind, "[run]"}, nil)
			if err != nil {
				return err
			}
			if err := h.put(fmt.Sprintf("/proc/%d/stat", w.PID), childStat(w.PID, p.PID, p.PID, w.Comm)); err != nil {
				return err
			}
			p.Children = append(p.Children, w.PID)
		}
	}
	return h.appendTo(p.Dir+"/log", fmt.Sprintf("stress-ng: info:  [%d] dispatching hogs\n", p.PID))
}

// stressOnce is stress-ng where it is not supervised.
func stressOnce(_ *host, r *run) int {
	return r.fail(1, "stress-ng: the fake host runs it only through Start")
}

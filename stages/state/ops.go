package state

import (
	"fmt"

	"plumb/lang/addrs"
)

// Select lists the instances that any of the targets covers, sorted as in the state; all of them without a target. s may be nil.
func Select(s *State, targets ...addrs.Target) []*Instance {
	if s == nil {
		return nil
	}
	var out []*Instance
	for _, i := range s.Instances {
		if len(targets) == 0 || anyContains(targets, i.Addr) {
			out = append(out, i)
		}
	}
	return out
}

func anyContains(targets []addrs.Target, a addrs.Instance) bool {
	for _, t := range targets {
		if t.Contains(a) {
			return true
		}
	}
	return false
}

// Find returns the current instance at an address, and the deposed ones.
func Find(s *State, a addrs.Instance) (*Instance, []*Instance, error) {
	if s == nil {
		return nil, nil, fmt.Errorf("there is no state yet, so no %s in it", a)
	}
	d := NewDraft(s)
	current, deposed := d.Current(a), d.Deposed(a)
	if current == nil && len(deposed) == 0 {
		return nil, nil, fmt.Errorf("the state has no %s; `plumb state list` shows what it has", a)
	}
	return current, deposed, nil
}

// Remove is the state without the instances that the target covers, and those: Plumb forgets them and leaves them in the world. A target that
// covers nothing is an error.
func Remove(s *State, t addrs.Target) (*State, []*Instance, error) {
	gone := Select(s, t)
	if len(gone) == 0 {
		return nil, nil, fmt.Errorf("the state has nothing that the address covers; `plumb state list` shows what it has")
	}
	d := NewDraft(s)
	for _, i := range gone {
		d.Remove(i)
	}
	return d.State(), gone, nil
}

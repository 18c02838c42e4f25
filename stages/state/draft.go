package state

import (
	"cmp"
	"slices"

	"plumb/lang/addrs"
)

// Draft is a state that is being changed, with its instances indexed. It is what a running apply and the folding of a journal
// have in common: both hand it the same outcomes. Not safe for concurrent use.
type Draft struct {
	base      *State
	instances map[instanceKey]*Instance
	deposed   int // how many of them are
}

// instanceKey identifies an instance. An address has one current instance, and one deposed instance per run that deposed it.
type instanceKey struct {
	addr      addrs.Instance
	deposed   bool
	deposedAt uint64
}

func keyOf(i *Instance) instanceKey { return instanceKey{i.Addr, i.Deposed, i.DeposedAt} }

func compareInstances(a, b *Instance) int {
	byDeposed := 0
	if a.Deposed != b.Deposed {
		byDeposed = -1
		if a.Deposed {
			byDeposed = 1
		}
	}
	return cmp.Or(a.Addr.Compare(b.Addr), byDeposed, cmp.Compare(a.DeposedAt, b.DeposedAt))
}

// NewDraft starts from a state, which it does not change.
func NewDraft(s *State) *Draft {
	d := &Draft{base: clone(s), instances: make(map[instanceKey]*Instance, len(s.Instances))}
	for _, i := range s.Instances {
		d.Put(i)
	}
	return d
}

// Current is the instance at an address, nil when there is none. It must not be changed.
func (d *Draft) Current(a addrs.Instance) *Instance { return d.instances[instanceKey{addr: a}] }

// Deposed lists the deposed instances of an address, oldest first.
func (d *Draft) Deposed(a addrs.Instance) []*Instance {
	if d.deposed == 0 {
		return nil // nearly always, and most users ask for every address
	}
	var out []*Instance
	for k, i := range d.instances {
		if k.addr == a && k.deposed {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, compareInstances)
	return out
}

// Empty says that there is no instance.
func (d *Draft) Empty() bool { return len(d.instances) == 0 }

// Put stores an instance in place of the one with its address (and deposition). The draft keeps i.
func (d *Draft) Put(i *Instance) {
	k := keyOf(i)
	if k.deposed && d.instances[k] == nil {
		d.deposed++
	}
	d.instances[k] = i
}

// Remove takes out the instance with the address and deposition of i.
func (d *Draft) Remove(i *Instance) {
	k := keyOf(i)
	if k.deposed && d.instances[k] != nil {
		d.deposed--
	}
	delete(d.instances, k)
}

// Depose makes the current instance of an address a deposed one, in the run that began at the given serial. Without a current
// instance, or when that run has deposed one already, it does nothing.
func (d *Draft) Depose(a addrs.Instance, serial uint64) {
	old := d.Current(a)
	if old == nil || d.instances[instanceKey{a, true, serial}] != nil {
		return
	}
	i := *old
	i.Deposed, i.DeposedAt = true, serial
	d.Remove(old)
	d.Put(&i)
}

// State is the draft as a state of its own: instances sorted, everything else as in Base.
func (d *Draft) State() *State {
	s := clone(d.base)
	s.Instances = make([]*Instance, 0, len(d.instances))
	for _, i := range d.instances {
		s.Instances = append(s.Instances, i)
	}
	slices.SortFunc(s.Instances, compareInstances)
	return s
}

// Base is where the rest of the state (hosts, outputs, applied plan) is changed. Its instances are ignored.
func (d *Draft) Base() *State { return d.base }

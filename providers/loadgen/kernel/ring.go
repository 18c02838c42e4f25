package kernel

import "sync/atomic"

// ring is one side's view of a single-producer, single-consumer ring that is shared with the kernel (linux/if_xdp.h). Its indices run freely
// over 32 bits: their difference is what counts, also when one has wrapped. The sequentially consistent atomics order the entries with the
// indices on every architecture.
type ring[T any] struct {
	producer, consumer *uint32 // shared
	flags              *uint32 // shared; nil where there is none
	entries            []T     // a power of two
	own                uint32  // this side's index, which may be ahead of the published one
}

func (r *ring[T]) mask() uint32 { return uint32(len(r.entries) - 1) }

// at is the entry of an index.
func (r *ring[T]) at(i uint32) *T { return &r.entries[i&r.mask()] }

// put writes the next entry, for which the caller knows that there is space; the kernel sees it after publish.
func (r *ring[T]) put(v T) {
	*r.at(r.own) = v
	r.own++
}

// publish shows the kernel what was put.
func (r *ring[T]) publish() { atomic.StoreUint32(r.producer, r.own) }

// untaken is how many entries that were put the kernel has not taken.
func (r *ring[T]) untaken() uint32 { return r.own - atomic.LoadUint32(r.consumer) }

// filled is how many entries the kernel has put beyond this side's index.
func (r *ring[T]) filled() uint32 { return atomic.LoadUint32(r.producer) - r.own }

// release gives the kernel back the entries before this side's index.
func (r *ring[T]) release() { atomic.StoreUint32(r.consumer, r.own) }

// needsWakeup says that the kernel waits for a system call.
func (r *ring[T]) needsWakeup() bool { return atomic.LoadUint32(r.flags)&ringNeedWakeup != 0 }

// ringNeedWakeup is XDP_RING_NEED_WAKEUP.
const ringNeedWakeup = 1

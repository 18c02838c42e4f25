package engine

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// spare is how much memory the rest of the process may take while there is no garbage collection: then there is one all the same.
const spare = 1 << 30

// quiet keeps Go's garbage collector and scheduler from stopping measuring threads. Both are settings of the whole process, so streams that
// overlap share one count: the first sets, the last puts back.
type quiet struct {
	mu        sync.Mutex
	users     int
	gcPercent int
	limit     int64
	procs     int
}

// process is the only one; what it guards is the process's own.
var process quiet

// enter switches the garbage collector off, up to a bound of memory, and lets threads more goroutines run at a time: a thread that polls
// never gives its place to another. The returned function puts everything back.
func (q *quiet) enter(threads int) func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.users == 0 {
		runtime.GC() // what is garbage now is not kept for the whole stream
		q.gcPercent = debug.SetGCPercent(-1)
		q.limit = debug.SetMemoryLimit(-1)
		debug.SetMemoryLimit(min(q.limit, inUse()+spare))
		q.procs = runtime.GOMAXPROCS(0)
	}
	q.users++
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + threads)
	var once sync.Once
	return func() { once.Do(q.leave(threads)) }
}

func (q *quiet) leave(threads int) func() {
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.users--
		if q.users > 0 {
			runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - threads)
			return
		}
		runtime.GOMAXPROCS(q.procs)
		debug.SetMemoryLimit(q.limit)
		debug.SetGCPercent(q.gcPercent)
	}
}

// inUse is the memory that the limit counts (runtime/debug.SetMemoryLimit).
func inUse() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

package engine

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pin ties the calling OS thread to one CPU and, with a priority of 1 to 99, makes it a real-time thread (SCHED_FIFO, sched(7)). The caller is locked
// to its thread and ends with it, so there is nothing to put back.
func pin(cpu, priority int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin a thread to CPU %d: %w. Is the CPU there and online, and may this process run on it (taskset -p, cpuset)?", cpu, err)
	}
	// A sleep may be up to the slack longer than asked for: 50 us unless it is set (PR_SET_TIMERSLACK(2const)). Real-time threads have none.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("shorten the sleep of a thread: %w", err)
	}
	if priority == 0 {
		return nil
	}
	param := struct{ priority int32 }{int32(priority)} // struct sched_param of sched_setscheduler(2)
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, uintptr(unsafe.Pointer(&param)))
	switch {
	case errors.Is(errno, unix.EPERM):
		return fmt.Errorf("give a thread the real-time priority %d: %w. It needs CAP_SYS_NICE, or RLIMIT_RTPRIO (ulimit -r) of at least that", priority, errno)
	case errno != 0:
		return fmt.Errorf("give a thread the real-time priority %d: %w", priority, errno)
	}
	return nil
}

// sleep gives the CPU away for about d. Go's own timers would wake another thread first, which has to find a CPU, and then hand over.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal may end it early: the thread then only looks sooner
}

// clock is nanoseconds since some moment of this process, monotonic.
type clock func() int64

// newClock reads the monotonic clock of the process: 45 ns on the machine in docs/performance.md, one reading for each batch of frames.
func newClock() clock {
	began := time.Now()
	return func() int64 { return int64(time.Since(began)) }
}

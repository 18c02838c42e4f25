package kernel

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkRealAgainstTrafgen sends as fast as possible from one end of a path and counts at the other end's interface, by AF_XDP, by AF_PACKET
// and by netsniff-ng's trafgen in turns, each on CPU 0. It logs every round; the metrics are medians. On a machine that others use, look at the
// frames per second of CPU time (Mppcs), which is steadier than the rate. Repeat it with
//
//	PLUMB_REAL=1 go test -run '^$' -bench RealAgainstTrafgen ./providers/loadgen/kernel
func BenchmarkRealAgainstTrafgen(b *testing.B) {
	real(b)
	if _, err := exec.LookPath("trafgen"); err != nil {
		b.Fatal("there is no trafgen: apt-get install netsniff-ng")
	}
	for _, size := range []int{64, 1518} {
		b.Run(fmt.Sprint("veth/", size), func(b *testing.B) {
			from, to := pair(b, 1500, 1)
			compete(b, from, to, size)
		})
		b.Run(fmt.Sprint("bridge/", size), func(b *testing.B) {
			from, to := bridged(b, 1500)
			compete(b, from, to, size)
		})
	}
}

const (
	rounds = 7
	window = time.Second
)

// usage is the CPU time that a sender has used.
type usage func() time.Duration

// sample is what a sender reached: frames per second, and per second of its CPU time.
type sample struct{ wall, cpu float64 }

func compete(b *testing.B, from, to end, size int) {
	count := counter(b, to)
	frame := make([]byte, size-4) // FCS
	write(frame, 1)
	copy(frame, []byte{0x02, 0, 0, 0, 0, 0x02}) // nobody's address: the receiving stack drops it
	measure := func(used usage) sample {
		start := count()
		until(b, "frames arrive", func() bool { return count() > start+1000 })
		first, cpu, at := count(), used(), time.Now()
		<-time.After(window)
		n := float64(count() - first)
		return sample{wall: n / time.Since(at).Seconds() / 1e6, cpu: n / (used() - cpu).Seconds() / 1e6}
	}
	senders := []struct {
		name string
		run  func() sample
	}{
		{AFXDP, func() sample { return loop(b, from, AFXDP, frame, measure) }},
		{AFPacket, func() sample { return loop(b, from, AFPacket, frame, measure) }},
		{"trafgen", func() sample { return trafgen(b, from, frame, measure) }},
	}
	got := make([][]sample, len(senders))
	for b.Loop() {
		for range rounds {
			for i, s := range senders {
				got[i] = append(got[i], s.run())
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, s := range senders {
		var wall, cpu, ratio []float64
		for k, v := range got[i] {
			wall, cpu, ratio = append(wall, v.wall), append(cpu, v.cpu), append(ratio, v.cpu/got[len(got)-1][k].cpu)
		}
		b.ReportMetric(median(wall), s.name+"-Mpps")
		b.ReportMetric(median(cpu), s.name+"-Mppcs")
		b.Logf("%-9s Mpps %s; per second of CPU %s; per trafgen's of the same round %s", s.name, spread(wall), spread(cpu), spread(ratio))
	}
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

func spread(v []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(v), slices.Min(v), slices.Max(v))
}

// cpuTime is the first number of a schedstat file: nanoseconds on a CPU.
func cpuTime(b *testing.B, file string) time.Duration {
	b.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

// counter reads the frames received by an interface from its namespace's net/dev, without starting a process.
func counter(b *testing.B, e end) func() uint64 {
	var file *os.File
	if err := inNetns(e.netns, func() (err error) {
		file, err = os.Open("/proc/thread-self/net/dev")
		return err
	}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	buf := make([]byte, 16<<10)
	return func() uint64 {
		n, _ := file.ReadAt(buf, 0)
		for line := range bytes.Lines(buf[:n]) {
			name, values, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
			if fields := strings.Fields(values); name == e.name && len(fields) > 1 {
				packets, err := strconv.ParseUint(fields[1], 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				return packets
			}
		}
		b.Fatalf("no %s in net/dev: %s", e.name, buf[:n])
		return 0
	}
}

// loop sends by a port from a thread of its own on CPU 0, where trafgen puts its first process too.
func loop(b *testing.B, from end, mode string, frame []byte, measure func(usage) sample) sample {
	p, err := Open(b.Context(), Config{Interface: from.name, Netns: from.netns, Mode: mode})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	var stop atomic.Bool
	done, thread := make(chan error), make(chan int, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends, and its affinity with it
		thread <- unix.Gettid()
		var cpu unix.CPUSet
		cpu.Set(0)
		if err := unix.SchedSetaffinity(0, &cpu); err != nil {
			done <- err
			return
		}
		tx, written := p.Tx(0), make([]bool, p.Tx(0).Depth())
		for !stop.Load() {
			slots := tx.Reserve(64)
			for i := range slots {
				if s := &slots[i]; !written[s.ID] {
					written[s.ID] = true
					copy(s.Buf, frame)
				}
				slots[i].Len = len(frame)
			}
			tx.Submit(len(slots))
			if err := tx.Flush(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	stat := fmt.Sprintf("/proc/self/task/%d/schedstat", <-thread)
	got := measure(func() time.Duration { return cpuTime(b, stat) })
	stop.Store(true)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return got
}

// trafgen sends the same frame by one process of trafgen, which passes the qdisc by too.
func trafgen(b *testing.B, from end, frame []byte, measure func(usage) sample) sample {
	var packet strings.Builder
	packet.WriteString("{ ")
	for i, v := range frame {
		if i > 0 {
			packet.WriteString(", ")
		}
		fmt.Fprintf(&packet, "0x%02x", v)
	}
	packet.WriteString(" }\n")
	file := filepath.Join(b.TempDir(), "frame.cfg")
	if err := os.WriteFile(file, []byte(packet.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command("ip", "netns", "exec", from.netns, "trafgen", "--dev", from.name, "--conf", file, "--cpus", "1", "--no-cpu-stats")
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it forks
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
		_ = cmd.Wait()
		if b.Failed() {
			b.Log(out.String())
		}
	}()
	return measure(func() (sum time.Duration) {
		for _, pid := range group(b, cmd.Process.Pid) {
			sum += cpuTime(b, fmt.Sprintf("/proc/%d/schedstat", pid))
		}
		return sum
	})
}

// group lists the processes of a process group: the fifth field of proc_pid_stat(5).
func group(b *testing.B, pgid int) (pids []int) {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				b.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// BenchmarkRealVeth sends 32 frames from one end of a veth pair and receives them at the other, in one thread.
func BenchmarkRealVeth(b *testing.B) {
	real(b)
	for _, mode := range []string{AFXDP, AFPacket} {
		for _, size := range []int{64, 1518} {
			b.Run(fmt.Sprint(mode, "/", size), func(b *testing.B) {
				x, y := pair(b, 1500, 1)
				tx, rx := opened(b, x, Config{Mode: mode}).Tx(0), opened(b, y, Config{Mode: mode}).Rx(0)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					slots := tx.Reserve(32)
					for i := range slots {
						slots[i].Len = size - 4
						write(slots[i].Buf[:18], uint32(n+i))
					}
					tx.Submit(len(slots))
					if err := tx.Flush(); err != nil {
						b.Fatal(err)
					}
					n += len(slots)
					for got := 0; got < len(slots); {
						for _, f := range rx.Receive(64) {
							if f[12] == testType>>8 {
								got++
							}
						}
						rx.Release()
					}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mpps")
			})
		}
	}
}

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// layers is 4,000 plumb_data in two layers of which one refers to the other.
const layers = `
resource "plumb_data" "a" {
  count = 2000
  input = { index = count.index, name = "a${count.index}" }
}

resource "plumb_data" "b" {
  count = 2000
  input = plumb_data.a[count.index].output.name
}
`

// BenchmarkLayers times whole processes: plan, apply, no-op plan and destroy of 4,000 plumb_data in two layers. Beside the wall time it reports CPU
// seconds and the greatest resident memory.
func BenchmarkLayers(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.plumb.hcl"), []byte(layers), 0o644); err != nil {
		b.Fatal(err)
	}
	plumb := func(b *testing.B, args ...string) *syscall.Rusage {
		b.Helper()
		job, err := json.Marshal(victim{Dir: dir, Host: filepath.Join(dir, "host"), Args: args})
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+string(job))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("plumb %v: %v\n%s", args, err, out)
		}
		return cmd.ProcessState.SysUsage().(*syscall.Rusage)
	}
	apply, destroy := []string{"apply", "-auto-approve", "-concise"}, []string{"destroy", "-auto-approve", "-concise"}
	plan := []string{"plan", "-concise"}
	nothing := func(*testing.B) {}
	up := func(b *testing.B) { plumb(b, apply...) }
	down := func(b *testing.B) { plumb(b, destroy...) }
	for _, c := range []struct {
		name          string
		before, after func(*testing.B)
		args          []string
	}{
		{"plan", nothing, nothing, plan},
		{"apply", nothing, down, apply},
		{"no-op-plan", up, down, plan},
		{"destroy", up, nothing, destroy},
	} {
		b.Run(c.name, func(b *testing.B) {
			var cpu float64
			var rss int64
			for range b.N {
				b.StopTimer()
				c.before(b)
				b.StartTimer()
				use := plumb(b, c.args...)
				b.StopTimer()
				cpu += float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
				rss = max(rss, use.Maxrss)
				c.after(b)
				b.StartTimer()
			}
			b.ReportMetric(cpu/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(rss)/1024, "MB-rss")
		})
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plumb/stages/bench"
)

// TestBenchGoesOnAfterKill kills a plumb with SIGKILL in the midst of its searches, again and again, each time a good many trials further; the last one finishes,
// keeps all trials, and no generator stays recorded as open.
func TestBenchGoesOnAfterKill(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/methods")); err != nil {
		t.Fatal(err)
	}
	job, err := json.Marshal(victim{Dir: dir, Args: []string{"bench"}})
	if err != nil {
		t.Fatal(err)
	}
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+string(job))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	journal := func() []byte {
		names, _ := filepath.Glob(filepath.Join(dir, "results", "*", "trials.jsonl"))
		if len(names) == 0 {
			return nil
		}
		data, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		return data[:bytes.LastIndexByte(data, '\n')+1]
	}
	killed := 0
	for range 4 {
		had := bytes.Count(journal(), []byte(`"trial":{`))
		cmd := start()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		poll := time.NewTicker(time.Millisecond)
		for over := false; !over; {
			select {
			case err := <-ended: // it was faster than this test
				if err != nil {
					t.Fatal(err)
				}
				over = true
			case <-poll.C:
				if bytes.Count(journal(), []byte(`"trial":{`)) < had+150 {
					continue
				}
				if cmd.Process.Signal(syscall.SIGKILL) == nil {
					killed++
				}
				<-ended
				over = true
			}
		}
		poll.Stop()
	}
	if killed == 0 {
		t.Fatal("no plumb was killed")
	}
	before := journal()
	runs, err := bench.List(filepath.Join(dir, "results"))
	if err != nil || len(runs) != 1 || runs[0].Problem != "" {
		t.Fatalf("%+v %v", runs, err)
	}
	var out bytes.Buffer
	e := testEnv(t, dir, "")
	e.stdout, e.stderr = &out, &out
	if code := run(e, []string{"plumb", "bench"}); code != exitOK {
		t.Fatalf("exit status %d\n%s", code, out.String())
	}
	if after := journal(); !bytes.HasPrefix(after, before) {
		t.Error("the journal does not begin with what it was")
	}
	if runs, err = bench.List(filepath.Join(dir, "results")); err != nil || len(runs) != 1 || runs[0].Interrupted {
		t.Fatalf("%+v %v", runs, err)
	}
	done, err := bench.Load(runs[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	trials := 0
	for _, b := range done.Benchmarks {
		trials += len(b.Trials)
	}
	if n := bytes.Count(journal(), []byte(`"trial":{`)); !done.Done || n != trials || len(done.Resumed) < killed {
		t.Errorf("done %t, %d trials, %d in the journal, gone on with %d times after %d kills", done.Done, trials, n, len(done.Resumed), killed)
	}
	state, err := os.ReadFile(filepath.Join(dir, "plumb.state.json"))
	if err != nil || strings.Contains(string(state), "open_generators") {
		t.Errorf("a generator is left open: %v\n%s", err, state)
	}
}

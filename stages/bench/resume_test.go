package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"
)

// sameMeasurement compares benchmarks but for when they were made.
var sameMeasurement = cmp.Options{cmpopts.IgnoreFields(Trial{}, "Started", "Took"), cmpopts.IgnoreFields(Benchmark{}, "Took"), cmpopts.IgnoreFields(Figure{}, "Took"), cmpopts.EquateEmpty()}

// resumable is a benchmark that searches, with INVALID trials in between.
func resumable(t *testing.T, d *device) Input {
	d.invalid = map[int]string{1: "hiccup", 5: "hiccup", 6: "hiccup", 11: "hiccup"}
	in := deviceBench(t, d, "latency", map[string]cty.Value{"repeat": cty.NumberIntVal(2)},
		map[string]cty.Value{"frame_sizes": numbers(64), "bidirectional": cty.True}, map[string]cty.Value{"search": cty.ObjectVal(map[string]cty.Value{"resolution": cty.NumberIntVal(10)})})
	other := *in.Benchmarks[0]
	other.Addr.Name, other.Method, other.MethodCfg = "c", "continuous", cty.EmptyObjectVal
	in.Benchmarks = append(in.Benchmarks, &other)
	return in
}

// A run whose process was killed at any point, also within a line of the journal, goes on to what the run would have been, and makes no trial twice.
func TestResumeAtEveryLine(t *testing.T) {
	d := newDevice()
	in := resumable(t, d)
	in.Results = t.TempDir()
	want := measure(t, in)
	total := d.made
	if !want.Done || total < 12 {
		t.Fatalf("%d trials, %+v", total, want.Broken())
	}
	journal, err := os.ReadFile(filepath.Join(in.Results, want.ID, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(journal, []byte("\n"))
	for cut := 1; cut < len(lines); cut++ {
		for _, half := range []bool{false, true} {
			t.Run(fmt.Sprintf("line %d, half %t", cut, half), func(t *testing.T) {
				t.Parallel()
				head := bytes.Join(lines[:cut], nil)
				made := bytes.Count(head, []byte(`"trial":{`))
				if half {
					head = append(head, lines[cut][:len(lines[cut])/2]...)
				}
				d := newDevice()
				in := resumable(t, d)
				d.made = made
				in.Results = t.TempDir()
				dir := filepath.Join(in.Results, want.ID)
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, journalFile), head, 0o644)); err != nil {
					t.Fatal(err)
				}
				if l, err := List(in.Results); err != nil || len(l) != 1 || !l[0].Interrupted || l[0].Trials != made {
					t.Fatalf("%+v %v", l, err)
				}
				got := measure(t, in)
				if got.ID != want.ID || !got.Done || len(got.Resumed) != 1 || d.made != total {
					t.Fatalf("run %s, done %t, resumed %v, %d trials of %d", got.ID, got.Done, got.Resumed, d.made, total)
				}
				if diff := cmp.Diff(want.Benchmarks, got.Benchmarks, sameMeasurement); diff != "" {
					t.Fatal(diff)
				}
				loaded, err := Load(dir)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(got, loaded, cmpopts.EquateEmpty()); diff != "" {
					t.Fatal(diff)
				}
			})
		}
	}
}

// Ctrl-C between two trials keeps what was measured, wherever it comes.
func TestResumeAfterInterrupt(t *testing.T) {
	d := newDevice()
	in := resumable(t, d)
	in.Results = t.TempDir()
	want := measure(t, in)
	total := d.made
	for stop := range total {
		t.Run(fmt.Sprintf("after %d trials", stop), func(t *testing.T) {
			t.Parallel()
			d := newDevice()
			in := resumable(t, d)
			in.Results = t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			d.stop = func(made int) {
				if made == stop {
					cancel(errors.New("Ctrl-C"))
				}
			}
			cut, err := Measure(ctx, in)
			if !errors.Is(err, context.Canceled) || cut.Done || len(cut.Broken()) != 1 {
				t.Fatalf("%v, %+v", err, cut.Broken())
			}
			d.stop = nil
			got := measure(t, in)
			if got.ID != cut.ID || !got.Done || d.made != total || d.closed < 2 {
				t.Fatalf("run %s after %s, done %t, %d trials of %d", got.ID, cut.ID, got.Done, d.made, total)
			}
			if diff := cmp.Diff(want.Benchmarks, got.Benchmarks, sameMeasurement); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestWhatIsGoneOnWith(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(in *Input, d *device)
		resumed bool
		kept    bool // the trials that the first benchmark had
		note    string
	}{
		{name: "as it was", change: func(*Input, *device) {}, resumed: true, kept: true},
		{name: "fresh", change: func(in *Input, _ *device) { in.Fresh = true }},
		{name: "another testbed", change: func(in *Input, _ *device) { in.Testbed = "other" }},
		{name: "the testbed was changed", change: func(in *Input, _ *device) { in.Fingerprint = "other" }},
		{name: "another Plumb", change: func(in *Input, _ *device) { in.PlumbVersion = "2" }},
		{name: "fewer benchmarks", change: func(in *Input, _ *device) { in.Benchmarks = in.Benchmarks[:1] }},
		{name: "another generator", change: func(in *Input, _ *device) {
			in.Generators[0].Config = cty.ObjectVal(map[string]cty.Value{"capacity": cty.NumberIntVal(1)})
		}, resumed: true},
		{name: "defined in another way", change: func(in *Input, _ *device) {
			b := *in.Benchmarks[0]
			b.MethodCfg = cty.ObjectVal(map[string]cty.Value{"search": cty.ObjectVal(map[string]cty.Value{"resolution": cty.NumberIntVal(9)})})
			in.Benchmarks[0] = &b
		}, resumed: true},
		{name: "answers differ from what is asked", change: func(in *Input, _ *device) {
			trials := 0
			editJournal(t, in, func(line string) string {
				if trials += strings.Count(line, `"trial":{`); trials > 4 {
					line = strings.Replace(line, `"phase":"`, `"phase":"other `, 1)
				}
				return line
			})
		}, resumed: true, note: "4 trials of the interrupted run were made anew: they do not answer what the search asks."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDevice()
			in := resumable(t, d)
			in.Results = t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			d.stop = func(made int) {
				if made == 8 {
					cancel()
				}
			}
			cut, err := Measure(ctx, in)
			if err == nil || len(cut.Benchmarks[0].Trials) != 8 {
				t.Fatalf("%v %+v", err, cut)
			}
			d.stop = nil
			tc.change(&in, d)
			got := measure(t, in)
			if resumed := got.ID == cut.ID && len(got.Resumed) == 1; resumed != tc.resumed || !got.Done {
				t.Errorf("resumed %t, done %t", resumed, got.Done)
			}
			kept := len(got.Benchmarks[0].Trials) > 8
			for i := range cut.Benchmarks[0].Trials {
				kept = kept && got.Benchmarks[0].Trials[i].Started.Equal(cut.Benchmarks[0].Trials[i].Started)
			}
			if kept != tc.kept {
				t.Errorf("trials kept: %t", kept)
			}
			if notes := strings.Join(got.Benchmarks[0].Notes, " "); notes != tc.note {
				t.Errorf("notes %q", notes)
			}
			loaded, err := Load(filepath.Join(in.Results, got.ID))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, loaded, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			// The newest run is done now: the next one is another.
			if next := measure(t, in); next.ID == got.ID || len(next.Resumed) > 0 {
				t.Errorf("a run that is done was gone on with: %s", next.ID)
			}
		})
	}
}

// editJournal changes each line of the only journal.
func editJournal(t *testing.T, in *Input, change func(string) string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(in.Results, "*", journalFile))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range strings.SplitAfter(string(data), "\n") {
		out = append(out, change(line))
	}
	if err := os.WriteFile(names[0], []byte(strings.Join(out, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A benchmark that an infrastructure error ended goes on too, with retries of its own.
func TestResumeAfterError(t *testing.T) {
	d := newDevice()
	in := resumable(t, d)
	in.Results = t.TempDir()
	d.invalid = map[int]string{5: "cable", 6: "cable", 7: "cable", 8: "cable"}
	first := measure(t, in)
	if want := "64-byte frames, 1 flows: 4 trials in a row did not count; the last because cable"; first.Benchmarks[0].Error != want || first.Done {
		t.Fatalf("%q, done %t", first.Benchmarks[0].Error, first.Done)
	}
	if first.Benchmarks[1].Error != "" {
		t.Fatalf("the other benchmark: %q", first.Benchmarks[1].Error)
	}
	d.invalid = nil
	other := first.Benchmarks[1].Trials
	second := measure(t, in)
	if second.ID != first.ID || !second.Done || second.Benchmarks[0].Trials[8].Attempt != 5 || second.Benchmarks[0].Trials[8].Verdict == Invalid {
		t.Errorf("%+v", second.Benchmarks[0].Trials[8])
	}
	if diff := cmp.Diff(other, second.Benchmarks[1].Trials); diff != "" {
		t.Errorf("the benchmark that had ended was measured again: %s", diff)
	}
}

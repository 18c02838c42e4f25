package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"plumb/stages/internal/durable"
)

// journalFile is a run's journal: one record a line, each synced before the next trial begins, so that what was measured outlives the process. It holds
// everything of a run that is not done; of one that is, it stands in the manifest as the record of how the run went.
const journalFile = "trials.jsonl"

// record is one line of the journal. Exactly one of Run, Resumed and Benchmark is set.
type record struct {
	Run     *header    `json:"run,omitempty"`     // the first line
	Resumed *time.Time `json:"resumed,omitempty"` // the run was taken up again

	Benchmark string `json:"benchmark,omitempty"` // address; one of the rest says what of it
	// Begun is the benchmark before its first trial, without trials and proofs. Another definition than before, or Anew, takes back what stands of the
	// benchmark before this line.
	Begun      *Benchmark  `json:"begun,omitempty"`
	Definition string      `json:"definition,omitempty"`
	Anew       bool        `json:"anew,omitempty"`
	Hosts      []HostFacts `json:"hosts,omitempty"`
	Proof      []Proof     `json:"proof,omitempty"`
	Trial      *Trial      `json:"trial,omitempty"`
	Ended      *Benchmark  `json:"ended,omitempty"` // without trials
}

// header says which run a journal is of.
type header struct {
	Format       string    `json:"format_version"`
	ID           string    `json:"id"`
	PlumbVersion string    `json:"plumb_version"`
	Started      time.Time `json:"started"`
	Testbed      string    `json:"testbed"`
	Serial       uint64    `json:"serial"`
	Fingerprint  string    `json:"fingerprint"` // of what is measured
	Benchmarks   []string  `json:"benchmarks"`
}

// journal is an open journal.
type journal struct {
	dir string // the run's folder
	f   *os.File
}

// kept is what a journal holds of one benchmark.
type kept struct {
	definition string
	begun      Benchmark
	proofs     []Proof
	trials     []Trial
	ended      *Benchmark // nil: it was cut off
}

// account is a journal that was read.
type account struct {
	header  header
	resumed []time.Time
	hosts   []HostFacts
	order   []string // benchmarks that were begun
	kept    map[string]*kept
	whole   int64 // bytes up to the last whole line
}

// newJournal makes the run's folder and its journal, and writes who it is of.
func newJournal(results string, h header) (*journal, error) {
	dir := filepath.Join(results, h.ID)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, journalFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	j := &journal{dir: dir, f: f}
	err = j.add(record{Run: &h})
	for _, d := range []string{dir, results} {
		err = errors.Join(err, durable.SyncDir(d))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// continueJournal opens a journal that was read, to go on behind its last whole line.
func continueJournal(dir string, a *account) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, journalFile), os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(a.whole)
	if err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &journal{dir: dir, f: f}, nil
}

// add appends a record durably. A nil journal keeps nothing.
func (j *journal) add(r record) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := j.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", j.f.Name(), err)
	}
	if err := j.f.Sync(); err != nil {
		return fmt.Errorf("make %s durable: %w", j.f.Name(), err)
	}
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.f.Close()
}

// readJournal reads the journal of a run's folder. A last line that was cut off does not count; anything else that cannot be read is an error. It wraps
// fs.ErrNotExist when there is none.
func readJournal(dir string) (*account, error) {
	path := filepath.Join(dir, journalFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := &account{kept: map[string]*kept{}}
	for n := 1; len(data) > 0; n++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			break
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if (r.Run != nil) != (n == 1) {
			return nil, fmt.Errorf("%s:%d: a journal begins with its run, and only there", path, n)
		}
		a.take(r)
		a.whole += int64(len(line)) + 1
		data = rest
	}
	if a.whole == 0 {
		return nil, fmt.Errorf("%s is empty: the run was cut off before it began: %w", path, fs.ErrNotExist)
	}
	return a, nil
}

// take folds a record in.
func (a *account) take(r record) {
	switch {
	case r.Run != nil:
		a.header = *r.Run
		return
	case r.Resumed != nil:
		a.resumed = append(a.resumed, *r.Resumed)
		return
	}
	k := a.kept[r.Benchmark]
	if k == nil {
		k = &kept{}
		a.kept[r.Benchmark] = k
		a.order = append(a.order, r.Benchmark)
	}
	switch {
	case r.Begun != nil:
		if r.Anew || r.Definition != k.definition {
			*k = kept{}
		}
		k.definition, k.begun, k.ended = r.Definition, *r.Begun, nil
		a.hosts = addFacts(a.hosts, r.Hosts)
	case r.Proof != nil:
		k.proofs = mergeProofs(k.proofs, r.Proof)
	case r.Trial != nil:
		k.trials = append(k.trials, *r.Trial)
	case r.Ended != nil:
		k.ended = r.Ended
	}
}

// mergeProofs puts newer proofs of a size and direction in the place of older ones.
func mergeProofs(have, more []Proof) []Proof {
	for _, p := range more {
		known := false
		for i := range have {
			if have[i].FrameSize == p.FrameSize && have[i].Direction == p.Direction {
				have[i], known = p, true
			}
		}
		if !known {
			have = append(have, p)
		}
	}
	return have
}

// benchmark is what is known of it: as it ended, or as far as it got.
func (k *kept) benchmark() Benchmark {
	if k.ended != nil {
		b := *k.ended
		b.Trials = k.trials
		return b
	}
	b := k.begun
	b.Proof, b.Trials = k.proofs, k.trials
	b.Error = fmt.Sprintf("interrupted after %d trials; plumb bench goes on", len(k.trials))
	b.Summary = summarize(b.Trials, searches(b.Method), 0)
	for _, t := range b.Trials {
		b.Took += t.Took
	}
	return b
}

// run is the run as far as the journal has it. Whether it is done is for the saved run to say.
func (a *account) run() *Run {
	h := a.header
	r := &Run{Format: h.Format, ID: h.ID, PlumbVersion: h.PlumbVersion, Started: h.Started, Ended: h.Started, Testbed: h.Testbed, Serial: h.Serial, Resumed: a.resumed,
		Hosts: a.hosts, Benchmarks: []Benchmark{}}
	if r.Hosts == nil {
		r.Hosts = []HostFacts{}
	}
	for _, name := range a.order {
		b := a.kept[name].benchmark()
		for _, t := range b.Trials {
			if end := t.Started.Add(time.Duration(t.Took * 1e9)); end.After(r.Ended) {
				r.Ended = end
			}
		}
		r.Benchmarks = append(r.Benchmarks, b)
	}
	return r
}

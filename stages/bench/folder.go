package bench

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumb/stages/internal/durable"
)

// Names inside a results folder. Reports that stages/report writes lie beside them and are not in the manifest: they can be made
// again from run.json at any time.
const (
	runFile      = "run.json"
	factsFile    = "facts.json"
	planFile     = "plan.json"
	trialsFile   = "trials.csv"
	configDir    = "configuration"
	manifestFile = "manifest.json"
)

// manifest lists the files of a results folder with their SHA-256 in hexadecimal.
type manifest struct {
	Format string            `json:"format_version"`
	Run    string            `json:"run"`
	Files  map[string]string `json:"sha256"`
}

// Save writes the run to dir/<run id>/ and returns that folder. Saving the same run again replaces it. Each file is written to a
// temporary file, synced and renamed; the manifest goes first and comes back last, so that a folder that was left half written is
// one without a manifest, which Load refuses.
func Save(dir string, run *Run, files Files) (string, error) {
	content, err := contents(run, files)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, run.ID)
	if err := os.MkdirAll(filepath.Join(folder, configDir), 0o755); err != nil {
		return "", err
	}
	if err := os.Remove(filepath.Join(folder, manifestFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	m := manifest{Format: FormatVersion, Run: run.ID, Files: map[string]string{}}
	for _, name := range sortedKeys(content) {
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(name)), content[name]); err != nil {
			return "", err
		}
		m.Files[name] = digest(content[name])
	}
	if run.Done { // nothing is added to its journal any more
		data, err := os.ReadFile(filepath.Join(folder, journalFile))
		switch {
		case err == nil:
			m.Files[journalFile] = digest(data)
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	data, err := encode(m)
	if err != nil {
		return "", err
	}
	return folder, writeFile(filepath.Join(folder, manifestFile), data)
}

// contents is every file of the folder but the manifest, by slash-separated name.
func contents(run *Run, files Files) (map[string][]byte, error) {
	out := map[string][]byte{trialsFile: TrialsCSV(run)}
	for name, v := range map[string]any{runFile: run, factsFile: run.Hosts} {
		data, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		out[name] = data
	}
	if files.Plan != nil {
		out[planFile] = files.Plan
	}
	for name, data := range files.Sources {
		out[configDir+"/"+safeName(name)] = data
	}
	return out, nil
}

// safeName makes a source's name a relative path below the folder: what leads out of it is written in another way.
func safeName(name string) string {
	name = filepath.ToSlash(filepath.Clean(name))
	if filepath.IsLocal(filepath.FromSlash(name)) {
		return name
	}
	return strings.ReplaceAll(strings.TrimLeft(strings.ReplaceAll(name, "..", "__"), "/"), ":", "_")
}

func encode(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// writeFile replaces a file atomically.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return durable.Replace(f, path, 0o644, err, nil)
}

// Load reads a results folder and verifies every file of its manifest. A run that is not done is as its journal has it, with an error in each benchmark that
// was cut off; it may lack a manifest.
func Load(dir string) (*Run, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		if a, err := readJournal(dir); err == nil {
			return a.run(), nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("%s has no %s: it is no results folder, or writing it was interrupted", dir, manifestFile)
	}
	if err != nil {
		return nil, err
	}
	run, err := verified(dir, data)
	if err != nil || run.Done {
		return run, err
	}
	a, err := readJournal(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return run, nil // of a Plumb that kept none
	}
	if err != nil {
		return nil, err
	}
	return a.run(), nil
}

// verified is the run of a folder whose files are as its manifest says.
func verified(dir string, data []byte) (*Run, error) {
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestFile), err)
	}
	if major, _, _ := strings.Cut(m.Format, "."); major != "1" {
		return nil, fmt.Errorf("%s has format version %q; this Plumb reads 1.x", dir, m.Format)
	}
	var run *Run
	for _, name := range sortedKeys(m.Files) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%s: the manifest names %q, which is outside of the folder", dir, name)
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("%s is in the manifest: %w", name, err)
		}
		if digest(data) != m.Files[name] {
			return nil, fmt.Errorf("%s was changed after the run: its checksum is not the manifest's", filepath.Join(dir, name))
		}
		if name == runFile {
			run = &Run{}
			if err := json.Unmarshal(data, run); err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
			}
		}
	}
	if run == nil {
		return nil, fmt.Errorf("%s: the manifest has no %s", dir, runFile)
	}
	return run, nil
}

// Listed is one run in a results folder, in short.
type Listed struct {
	ID, Dir    string
	Started    time.Time
	Benchmarks []string
	// Interrupted says that it is not done and may be gone on with: it has so many Trials.
	Interrupted bool
	Trials      int
	Problem     string // why it cannot be read; then only ID and Dir are set
}

// List lists the runs below a results folder, oldest first. A folder that is not there holds none.
func List(dir string) ([]Listed, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Listed
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		l := Listed{ID: e.Name(), Dir: filepath.Join(dir, e.Name())}
		if run, err := Load(l.Dir); err != nil {
			l.Problem = err.Error()
		} else {
			l.Started = run.Started
			for _, b := range run.Benchmarks {
				l.Benchmarks, l.Trials = append(l.Benchmarks, b.Addr), l.Trials+len(b.Trials)
			}
			_, err := os.Stat(filepath.Join(l.Dir, journalFile)) // a Plumb that kept none did not know of going on either
			l.Interrupted = !run.Done && err == nil
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Listed) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// TrialsCSV is every trial of the run as a row, INVALID ones too. Units are in the names; numbers have a point and no grouping.
func TrialsCSV(run *Run) []byte {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"benchmark", "frame_size_bytes", "flows", "repeat", "attempt", "started", "duration_s", "offered_fps", "sent", "unsent", "received",
		"tx_fps", "rx_fps", "rx_l1_bps", "loss_ratio", "verdict", "reasons", "phase", "intended_s", "frames", "burst", "duplicated", "reordered", "surplus",
		"latency_p50_ns", "latency_p999_ns", "last_loss_s", "outage_s", "took_s", "notes"})
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	u := func(v uint64) string { return strconv.FormatUint(v, 10) }
	maybe := func(v *float64) string {
		if v == nil {
			return ""
		}
		return f(*v)
	}
	for _, bm := range run.Benchmarks {
		for _, t := range bm.Trials {
			var p50, p999 *float64
			if t.Latency != nil {
				p50, p999 = &t.Latency.P50, &t.Latency.P999
			}
			w.Write([]string{bm.Addr, strconv.Itoa(t.FrameSize), strconv.Itoa(t.Flows), strconv.Itoa(t.Repeat), strconv.Itoa(t.Attempt),
				t.Started.UTC().Format(time.RFC3339Nano), f(t.Duration), f(t.Offered), u(t.Sent), u(t.Unsent), u(t.Received), f(t.TxRate), f(t.RxRate),
				f(t.RxBitrate), f(t.LossRatio), string(t.Verdict), strings.Join(t.Reasons, "; "), t.Phase, f(t.Intended), strconv.Itoa(t.Frames), strconv.Itoa(t.Burst),
				u(t.Duplicated), u(t.Reordered), u(t.Surplus), maybe(p50), maybe(p999), maybe(t.LastLoss), maybe(t.Outage), f(t.Took), strings.Join(t.Notes, "; ")})
		}
	}
	w.Flush() // a strings.Builder takes everything
	return []byte(b.String())
}

package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"plumb/lang/eval"
)

// begin makes the run and its journal, or takes up one that was interrupted: the newest of this testbed with the same benchmarks, if it is not done and
// nothing that is measured has changed since. The account is nil for a new run, the journal without Input.Results.
func begin(in Input) (*Run, *journal, *account, error) {
	h := header{Format: FormatVersion, ID: runID(in), PlumbVersion: in.PlumbVersion, Started: in.Now(), Testbed: in.Testbed, Serial: in.Serial, Fingerprint: in.Fingerprint}
	for _, b := range in.Benchmarks {
		h.Benchmarks = append(h.Benchmarks, b.Addr.String())
	}
	if in.Results == "" {
		return (&account{header: h}).run(), nil, nil, nil
	}
	if !in.Fresh {
		dir, a, err := interrupted(in.Results, h)
		if err != nil {
			return nil, nil, nil, err
		}
		if a != nil {
			return takeUp(in, dir, a)
		}
	}
	j, err := newJournal(in.Results, h)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("begin the run's journal: %w", err)
	}
	run := (&account{header: h}).run()
	if _, err := Save(in.Results, run, in.Files); err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("save results: %w", err), j.close())
	}
	return run, j, nil, nil
}

func takeUp(in Input, dir string, a *account) (*Run, *journal, *account, error) {
	j, err := continueJournal(dir, a)
	if err == nil {
		now := in.Now()
		a.resumed = append(a.resumed, now)
		if err = j.add(record{Resumed: &now}); err != nil {
			err = errors.Join(err, j.close())
		}
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("take up run %s: %w", a.header.ID, err)
	}
	run := a.run()
	run.Benchmarks = []Benchmark{} // each comes back when it is its turn
	return run, j, a, nil
}

// interrupted finds the newest run with the same testbed and benchmarks. It is nil when that one is done, or cannot be gone on with.
func interrupted(results string, h header) (string, *account, error) {
	entries, err := os.ReadDir(results)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	slices.Reverse(entries) // sorted by name, which begins with the time
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		dir := filepath.Join(results, e.Name())
		a, err := readJournal(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("is there a run to go on with? %w; -fresh does not ask", err)
		}
		if a.header.Testbed != h.Testbed || !sameSet(a.header.Benchmarks, h.Benchmarks) {
			continue
		}
		if isDone(dir) || a.header.Fingerprint != h.Fingerprint || a.header.PlumbVersion != h.PlumbVersion {
			return "", nil, nil
		}
		return dir, a, nil
	}
	return "", nil, nil
}

// isDone says whether a run was saved as done. One without a manifest was cut off while it was saved, and is gone on with.
func isDone(dir string) bool {
	var saved struct{ Done bool }
	_, err := os.Stat(filepath.Join(dir, manifestFile))
	data, readErr := os.ReadFile(filepath.Join(dir, runFile))
	return err == nil && readErr == nil && json.Unmarshal(data, &saved) == nil && saved.Done
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// definition is a digest of all that makes two measurements of a benchmark the same: its arguments, path and generator. Sensitive values are left out, since a
// digest of a short secret could be guessed. The require blocks may change: they are judged anew.
func definition(in Input, b *eval.Benchmark) (string, error) {
	d := struct {
		Method, Generator              string
		Path                           []string
		Shared, Settings, GeneratorCfg json.RawMessage
	}{Method: b.Method, Generator: b.Generator.String()}
	for _, p := range b.Path {
		d.Path = append(d.Path, p.String())
	}
	var err error
	keep := func(v cty.Value) json.RawMessage {
		out, e := encodeValue(v)
		err = errors.Join(err, e)
		return out
	}
	d.Shared, d.Settings = keep(b.Config), keep(b.MethodCfg)
	for _, g := range in.Generators {
		if g.Addr == b.Generator {
			d.GeneratorCfg = keep(g.Config)
		}
	}
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// encodeValue writes a value as JSON with null for what is marked.
func encodeValue(v cty.Value) (json.RawMessage, error) {
	if v == cty.NilVal {
		return nil, nil
	}
	v, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.IsMarked() && v.Type().IsPrimitiveType() {
			return cty.NullVal(v.Type()), nil
		}
		v, _ = v.Unmark()
		return v, nil
	})
	if err != nil {
		return nil, err
	}
	if !v.IsWhollyKnown() {
		return nil, errors.New("a value is still unknown")
	}
	return ctyjson.Marshal(v, v.Type())
}

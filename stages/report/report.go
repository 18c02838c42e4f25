// Package report writes what a run of benchmarks measured for people and for other programs: a table for the terminal, Markdown, CSV,
// JSON, and one HTML page that needs no network.
//
// Everything but Write is a pure function of bench.Run, so a report can be made again at any time from a results folder. A method is
// called by its own name: what continuous measures is never called RFC 2544 throughput.
//
// Start reading at group, which picks what is shown of a frame size and flow count; then HTML, Table, Markdown.
package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"plumb/stages/bench"
)

// Write writes report.html, report.md, report.csv (rates by frame size), figures.csv (what searches found) and report.json into a run's folder and returns their paths. Each replaces an older
// one atomically. They are not in the folder's manifest.
func Write(dir string, run *bench.Run) ([]string, error) {
	page, err := HTML(run)
	if err != nil {
		return nil, err
	}
	data, err := JSON(run)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range []struct {
		name string
		data []byte
	}{{"report.html", page}, {"report.md", Markdown(run)}, {"report.csv", CSV(run)}, {"figures.csv", FiguresCSV(run)}, {"report.json", data}} {
		path := filepath.Join(dir, f.name)
		if err := replace(path, f.data); err != nil {
			return out, fmt.Errorf("write report: %w", err)
		}
		out = append(out, path)
	}
	return out, nil
}

func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is there after the rename
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

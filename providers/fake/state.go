package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// state is what a host is apart from its files.
type state struct {
	NextPID     int                    `json:"next_pid"`
	Procs       map[int]*process       `json:"processes"`
	Alternative string                 `json:"alternative"` // chosen by hand; "": auto
	Unknown     []string               `json:"unknown_commands"`
	Settings    settingsState          `json:"settings"`
	NICs        map[string]*controller `json:"nics"`
	Network     *network               `json:"network"`
	Boots       int                    `json:"boots"`
}

func newState() *state {
	return &state{NextPID: 1000, Procs: map[int]*process{}, Settings: newSettings(), NICs: map[string]*controller{}}
}

func (c *Conn) stateFile() string { return filepath.Join(c.dir, "state.json") }

func (h *host) load() error {
	b, err := os.ReadFile(h.stateFile())
	if err != nil {
		return err
	}
	h.state = newState()
	if err := json.Unmarshal(b, h.state); err != nil {
		return fmt.Errorf("%s: %w", h.stateFile(), err)
	}
	if h.state.Network == nil {
		h.state.Network = seedNetwork()
	}
	b, err = os.ReadFile(filepath.Join(h.dir, "settings.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &h.settings); err != nil {
		return fmt.Errorf("settings.json of the fake host: %w", err)
	}
	return nil
}

func (h *host) save() error {
	b, err := json.MarshalIndent(h.state, "", "  ")
	if err != nil {
		return err
	}
	return replace(h.stateFile(), b, 0o644)
}

// replace writes a file so that a kill leaves the old or the new one. It does not fsync: a fake host need not survive a power cut.
func replace(name string, data []byte, mode fs.FileMode) error {
	tmp := name + ".plumb-new"
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return err
	}
	if err := os.Chmod(tmp, mode); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

package plan

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/stages/internal/durable"
	"plumb/stages/internal/value"
	"plumb/stages/state"
)

// Saved is a plan with all that a later apply needs to evaluate the same configuration again: it looks at no other file.
type Saved struct {
	Plan      *Plan
	Sources   map[string][]byte // Config.Sources
	ConfigDir string            // the folder of the root module, as Sources names it
	Dir       string            // path.cwd
	Variables map[string]cty.Value
}

// savedFile is the JSON form.
type savedFile struct {
	Format    string                     `json:"plan_file_version"`
	Plan      *Plan                      `json:"plan"`
	Sources   map[string][]byte          `json:"sources,omitempty"`
	ConfigDir string                     `json:"config_dir"`
	Dir       string                     `json:"dir"`
	Variables map[string]json.RawMessage `json:"variables,omitempty"` // ctyjson with its type
}

// fileVersion of the file around the plan: "major.minor", as FormatVersion.
const fileVersion = "1.0"

// Save writes a plan file: gzip'd JSON, readable by its owner only, because it holds the values of sensitive variables and attributes. The file is replaced atomically. An
// errored plan is refused.
func Save(path string, s Saved) error {
	if s.Plan == nil || s.Plan.Errored {
		return errors.New("a plan with errors cannot be saved")
	}
	f := savedFile{Format: fileVersion, Plan: s.Plan, Sources: s.Sources, ConfigDir: s.ConfigDir, Dir: s.Dir, Variables: map[string]json.RawMessage{}}
	for name, v := range s.Variables {
		plain, _ := value.Unmark(v)
		e, err := value.Encode(plain, cty.DynamicPseudoType)
		if err != nil {
			return fmt.Errorf("save variable %s: %w", name, err)
		}
		f.Variables[name] = e.JSON
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	z := gzip.NewWriter(tmp)
	if err := durable.Replace(tmp, path, 0o600, errors.Join(json.NewEncoder(z).Encode(f), z.Close()), nil); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return nil
}

// Load reads a plan file. What is not one, or is of a newer Plumb, is an error that says so.
func Load(path string) (*Saved, error) {
	file, err := os.Open(path)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("plan file %s: %w", path, err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s is not a plan file of plumb plan -out", path)
	}
	var f savedFile
	if err := json.NewDecoder(z).Decode(&f); err != nil {
		return nil, fmt.Errorf("plan file %s is damaged: %w", path, err)
	}
	if f.Plan == nil || f.Format == "" {
		return nil, fmt.Errorf("%s is not a plan file of plumb plan -out", path)
	}
	if major(f.Format) != major(fileVersion) || major(f.Plan.FormatVersion) != major(FormatVersion) {
		return nil, fmt.Errorf("plan file %s was written by Plumb %s in another format: make the plan again", path, f.Plan.PlumbVersion)
	}
	if f.Plan.Errored {
		return nil, fmt.Errorf("plan file %s holds a plan with errors", path)
	}
	s := &Saved{Plan: f.Plan, Sources: f.Sources, ConfigDir: f.ConfigDir, Dir: f.Dir, Variables: map[string]cty.Value{}}
	for name, raw := range f.Variables {
		if s.Variables[name], err = value.Decode(raw, cty.DynamicPseudoType); err != nil {
			return nil, fmt.Errorf("plan file %s: variable %s: %w", path, name, err)
		}
	}
	return s, nil
}

func major(version string) string {
	m, _, _ := strings.Cut(version, ".")
	return m
}

// ErrStale is wrapped by Check's errors: the plan was made for another state.
var ErrStale = errors.New("the plan is out of date")

// Check says whether the state is still the one that the plan was made for. It is handed the state with the journal folded in; nil: absent.
func (p *Plan) Check(st *state.State) error {
	const again = "Make a new plan and apply that."
	if st != nil && st.AppliedPlan != "" && st.AppliedPlan == p.ID {
		return fmt.Errorf("%w: this very plan (%s) has been applied already. %s", ErrStale, p.ID, again)
	}
	switch {
	case st == nil && p.Prior.Absent:
		return nil
	case st == nil:
		return fmt.Errorf("%w: it was made for the state with serial %d, and there is no state now. %s", ErrStale, p.Prior.Serial, again)
	case p.Prior.Absent:
		return fmt.Errorf("%w: there was no state when it was made, and now there is one with serial %d. %s", ErrStale, st.Serial, again)
	case st.Lineage != p.Prior.Lineage:
		return fmt.Errorf("%w: it was made for another testbed: its state has lineage %s, and this one has %s. %s", ErrStale, p.Prior.Lineage, st.Lineage, again)
	case st.Serial != p.Prior.Serial:
		return fmt.Errorf("%w: it was made for serial %d of the state, and the state now has serial %d. %s", ErrStale, p.Prior.Serial, st.Serial, again)
	}
	return nil
}

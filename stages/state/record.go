package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"plumb/lang/addrs"
)

// JournalVersion is the version of the journal's format.
const JournalVersion = 1

// Begin is a journal's first record: which run this is and which state it began with.
type Begin struct {
	Version      int             `json:"version"`
	PlumbVersion string          `json:"plumb_version"`
	Plan         string          `json:"plan"` // id
	Lineage      string          `json:"lineage"`
	Serial       uint64          `json:"serial"` // of the state on disk; 0 when there was none
	Started      time.Time       `json:"started"`
	Hosts        map[string]Host `json:"hosts,omitempty"`
}

// Op is what a step does to its instance.
type Op string

const (
	OpCreate Op = "create"
	OpUpdate Op = "update" // also an apply again
	OpDelete Op = "delete"
	OpForget Op = "forget"
)

// Intent says that a step is about to change the world.
type Intent struct {
	Step int `json:"step"`
	Op   Op  `json:"op"`
	// Prior is what was there before, as ctyjson; empty for a create.
	Prior json.RawMessage `json:"prior,omitempty"`
	// Instance is what the state must hold if the outcome never gets known. For create and update its attributes are the planned
	// ones, unknown ones null; for delete those of before. Its Undo is what Prepare said.
	Instance *Instance `json:"instance"`
	// Deposes says that the instance that is at the address now becomes deposed.
	Deposes bool `json:"deposes,omitempty"`
}

// Outcome says how a step ended. It stands on its own: no Intent is needed to fold it.
type Outcome struct {
	Step      int            `json:"step"`
	Op        Op             `json:"op"`
	Addr      addrs.Instance `json:"address"`
	Deposed   bool           `json:"deposed,omitempty"`
	DeposedAt uint64         `json:"deposed_at,omitempty"`
	// Instance is what is there now; nil: nothing.
	Instance *Instance `json:"instance"`
	// Deposes is as in Intent, for steps that need none.
	Deposes bool `json:"deposes,omitempty"`
	// Restores says that a create that was to depose came to nothing: what it deposed is the current instance again.
	Restores bool `json:"restores,omitempty"`
	// Error is why the step failed; "" when it did not.
	Error string `json:"error,omitempty"`
}

// HostRecord is a host that became known in the middle of a run.
type HostRecord struct {
	Name   string          `json:"name"`
	Config json.RawMessage `json:"config"`
}

// End is the last record of a run that was not cut off.
type End struct {
	Outputs map[string]Output `json:"outputs"`
	// Applied says that the whole plan was applied.
	Applied bool `json:"applied,omitempty"`
}

// Record is one line of a journal: exactly one of the fields is set.
type Record struct {
	Begin   *Begin      `json:"begin,omitempty"`
	Host    *HostRecord `json:"host,omitempty"`
	Intent  *Intent     `json:"intent,omitempty"`
	Outcome *Outcome    `json:"outcome,omitempty"`
	End     *End        `json:"end,omitempty"`
}

// String names the record: "intent of step 3", for messages and crash points.
func (r *Record) String() string {
	switch {
	case r.Begin != nil:
		return "begin"
	case r.Host != nil:
		return "host " + r.Host.Name
	case r.Intent != nil:
		return fmt.Sprintf("intent of step %d", r.Intent.Step)
	case r.Outcome != nil:
		return fmt.Sprintf("outcome of step %d", r.Outcome.Step)
	case r.End != nil:
		return "end"
	}
	return "empty record"
}

func (r *Record) check() error {
	set := 0
	for _, is := range []bool{r.Begin != nil, r.Host != nil, r.Intent != nil, r.Outcome != nil, r.End != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return errors.New("is no record that this Plumb knows")
	case r.Begin != nil && r.Begin.Lineage == "":
		return errors.New("has no lineage")
	case r.Intent != nil && !complete(r.Intent.Instance):
		return errors.New("is an intent without an instance")
	case r.Outcome != nil && (r.Outcome.Addr.Resource.Type == "" || r.Outcome.Instance != nil && !complete(r.Outcome.Instance)):
		return errors.New("is an outcome without an instance")
	case r.Outcome != nil && r.Outcome.Instance != nil && r.Outcome.Instance.Addr != r.Outcome.Addr:
		return errors.New("is an outcome of one instance that holds another")
	}
	return nil
}

func complete(i *Instance) bool {
	return i != nil && i.Addr.Resource.Type != "" && len(i.Attributes) > 0
}

// Log is the content of a journal.
type Log struct {
	Begin   Begin
	Records []Record // without the Begin
	Torn    bool     // the last line was cut off in the middle and is left out
}

// DecodeJournal reads a journal. A last line that was cut off is left out: nothing waited for it. A journal that ends before
// its first record is whole says nothing: nil. Anything else that cannot be read is an error: steps may have been
// done that would be forgotten.
func DecodeJournal(data []byte) (*Log, error) {
	var log Log
	for n := 1; len(data) > 0; n++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		data = rest
		var r Record
		err := json.Unmarshal(line, &r)
		if (err != nil || !whole) && len(rest) == 0 {
			log.Torn = true
			break
		}
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if (r.Begin != nil) != (n == 1) {
			return nil, fmt.Errorf("line %d: a %s stands there", n, &r)
		}
		if r.Begin == nil {
			log.Records = append(log.Records, r)
			continue
		}
		if r.Begin.Version > JournalVersion {
			return nil, fmt.Errorf("it %w (%s): its format is %d and this Plumb reads up to %d", ErrNewerFormat, r.Begin.PlumbVersion, r.Begin.Version, JournalVersion)
		}
		log.Begin = *r.Begin
	}
	if log.Begin.Lineage == "" {
		return nil, nil
	}
	return &log, nil
}

package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"plumb/stages/internal/durable"
)

// Journal records what a run is about to do and has done, beside the state file, so that a killed run is not forgotten. Records
// stand in the file in the order in which the methods were called. Safe for concurrent use but for Close.
//
// One goroutine writes: callers that wait at the same time share one fsync. Records of hostless instances are not waited
// for: a create that is forgotten did nothing to the world, and whatever depends on it comes later in the file.
type Journal struct {
	file  *os.File
	reqs  chan request
	done  chan struct{} // closed when the writer has ended
	crash func(string)
	err   error // why the writer gave up; the writer's until done is closed
}

type request struct {
	record *Record
	line   []byte
	reply  chan error // nil: nobody waits
}

// batchLimit bounds how many records share a write, so that nobody waits for an endless one.
const batchLimit = 512

// StartJournal makes the journal of a run, with its Begin on disk. It is an error when there is one: that has to be folded first.
// The store must be locked.
func (s *Store) StartJournal(b Begin) (*Journal, error) {
	if !s.locked() {
		return nil, errNotLocked
	}
	b.Version, b.PlumbVersion, b.Started = JournalVersion, s.env.Version, s.env.Now().UTC()
	f, err := os.OpenFile(s.JournalPath(), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("start journal: %s is there and was not folded into the state: %w", s.JournalPath(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("start journal: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(s.JournalPath())); err != nil {
		f.Close()
		return nil, fmt.Errorf("start journal: %w", err)
	}
	j := &Journal{file: f, reqs: make(chan request, 2*batchLimit), done: make(chan struct{}), crash: s.env.Crash}
	go j.write()
	if err := j.add(&Record{Begin: &b}, true); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// Host records a host that became known during the run. It is durable before any later Intent is.
func (j *Journal) Host(name string, config json.RawMessage) error {
	return j.add(&Record{Host: &HostRecord{Name: name, Config: config}}, false)
}

// Intent records a step before it changes the world. On return it is on disk, unless the instance is hostless.
func (j *Journal) Intent(i Intent) error {
	return j.add(&Record{Intent: &i}, i.Instance.Host != "")
}

// Outcome records how a step ended. On return it is on disk, unless the host is "".
func (j *Journal) Outcome(o Outcome, host string) error {
	return j.add(&Record{Outcome: &o}, host != "")
}

// End records the end of the run. On return everything is on disk.
func (j *Journal) End(e End) error { return j.add(&Record{End: &e}, true) }

// Close ends the writer; the file stays. Nothing may be recorded at the same time or after.
func (j *Journal) Close() error {
	close(j.reqs)
	<-j.done
	return errors.Join(j.err, j.file.Close())
}

func (j *Journal) add(r *Record, wait bool) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("journal: %s: %w", r, err)
	}
	req := request{record: r, line: append(line, '\n')}
	if wait {
		req.reply = make(chan error, 1)
	}
	j.reqs <- req
	if !wait {
		return nil
	}
	return <-req.reply
}

// write serves requests until reqs is closed.
func (j *Journal) write() {
	defer close(j.done)
	for first := range j.reqs {
		batch := []request{first}
	more:
		for len(batch) < batchLimit {
			select {
			case r, ok := <-j.reqs:
				if !ok {
					break more
				}
				batch = append(batch, r)
			default:
				break more
			}
		}
		// After a write or an fsync that failed, what is on disk is not known any more: the journal takes nothing else.
		if j.err == nil {
			j.err = j.commit(batch)
		}
		for _, r := range batch {
			if r.reply != nil {
				r.reply <- j.err
			}
		}
	}
}

func (j *Journal) commit(batch []request) error {
	var data []byte
	sync := false
	for _, r := range batch {
		if j.crash != nil {
			j.crash("before the " + r.record.String())
		}
		data = append(data, r.line...)
		sync = sync || r.reply != nil
	}
	if err := j.put(data); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if sync {
		if err := j.file.Sync(); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	if j.crash != nil {
		for _, r := range batch {
			j.crash("after the " + r.record.String())
		}
	}
	return nil
}

// put is one write; where crashes are tried out it is two, so that a torn line is tried too.
func (j *Journal) put(data []byte) error {
	if j.crash != nil {
		half := len(data) / 2
		if _, err := j.file.Write(data[:half]); err != nil {
			return err
		}
		j.crash("in the middle of a record")
		data = data[half:]
	}
	_, err := j.file.Write(data)
	return err
}

package state

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJournalKeepsOrderAndSharesWrites(t *testing.T) {
	s := lockedStore(t)
	j, err := s.StartJournal(Begin{Plan: "p", Lineage: "l", Serial: 0, Hosts: map[string]Host{"dut": {Config: []byte(`{}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	const steps = 200
	var wg sync.WaitGroup
	for n := range steps {
		wg.Go(func() {
			i := instance(t, fmt.Sprintf("a.x[%d]", n), `{"id":null}`)
			if n%2 == 0 {
				i.Host = ""
			}
			if err := j.Intent(Intent{Step: n, Op: OpCreate, Instance: i}); err != nil {
				t.Error(err)
			}
			if err := j.Outcome(Outcome{Step: n, Op: OpCreate, Addr: i.Addr, Instance: i}, i.Host); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(j.End(End{Applied: true}), j.Close()); err != nil {
		t.Fatal(err)
	}
	log, err := s.ReadJournal()
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Records) != 2*steps+1 || log.Torn {
		t.Errorf("%d records, torn %v", len(log.Records), log.Torn)
	}
	begun := map[int]bool{}
	for _, r := range log.Records {
		if r.Intent != nil {
			begun[r.Intent.Step] = true
		}
		if r.Outcome != nil && !begun[r.Outcome.Step] {
			t.Errorf("the %s comes before its intent", &r)
		}
	}
	st, report, err := Fold(nil, log)
	if err != nil || len(st.Instances) != steps || len(report.InDoubt) != 0 || !report.Ended || st.AppliedPlan != "p" || st.Hosts["dut"].Config == nil {
		t.Errorf("folded to %d instances, %+v, %v", len(st.Instances), report, err)
	}
}

func TestJournalThatCannotBeWrittenTakesNothing(t *testing.T) {
	s := lockedStore(t)
	j, err := s.StartJournal(Begin{Plan: "p", Lineage: "l"})
	if err != nil {
		t.Fatal(err)
	}
	j.file.Close()
	i := instance(t, "a.x", `{}`)
	if err := j.Intent(Intent{Instance: i}); err == nil {
		t.Error("an intent is taken that is not on disk")
	}
	if err := j.End(End{}); err == nil {
		t.Error("an end is taken after a write that failed")
	}
	if err := j.Close(); err == nil {
		t.Error("closing hides the error")
	}
}

func TestCrashPointsAreToldInOrder(t *testing.T) {
	s := lockedStore(t)
	var points []string
	s.env.Crash = func(p string) { points = append(points, p) }
	j, err := s.StartJournal(Begin{Plan: "p", Lineage: "l"})
	if err != nil {
		t.Fatal(err)
	}
	i := instance(t, "a.x", `{}`)
	if err := errors.Join(j.Intent(Intent{Step: 4, Instance: i}), j.Close()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"before the begin", "in the middle of a record", "after the begin",
		"before the intent of step 4", "in the middle of a record", "after the intent of step 4",
	}
	if d := cmp.Diff(want, points); d != "" {
		t.Error(d)
	}
}

func TestDecodeJournal(t *testing.T) {
	begin := `{"begin":{"version":1,"plan":"p","lineage":"l"}}` + "\n"
	intent := `{"intent":{"step":1,"op":"create","instance":{"address":"a.x","attributes":{}}}}` + "\n"
	for name, c := range map[string]struct {
		in      string
		records int
		torn    bool
		none    bool
		err     string
	}{
		"empty":                  {in: "", none: true},
		"torn begin":             {in: begin[:20], none: true},
		"only begin":             {in: begin},
		"whole":                  {in: begin + intent, records: 1},
		"torn last line":         {in: begin + intent + intent[:30], records: 1, torn: true},
		"last line without end":  {in: begin + intent + strings.TrimSuffix(intent, "\n"), records: 1, torn: true},
		"zeros at the end":       {in: begin + intent + "\x00\x00\x00", records: 1, torn: true},
		"damaged in the middle":  {in: begin + "{\n" + intent, err: "line 2"},
		"no begin":               {in: intent, err: "line 1"},
		"two begins":             {in: begin + begin, err: "line 2"},
		"an unknown record":      {in: begin + `{"else":{}}` + "\n" + intent, err: "line 2"},
		"an unknown last record": {in: begin + `{"else":{}}` + "\n", err: "line 2"},
		"no instance":            {in: begin + `{"intent":{"step":1}}` + "\n", err: "without an instance"},
		"no lineage":             {in: `{"begin":{"version":1}}` + "\n", err: "no lineage"},
		"newer":                  {in: `{"begin":{"version":2,"lineage":"l","plumb_version":"9"}}` + "\n", err: "newer Plumb"},
	} {
		log, err := DecodeJournal([]byte(c.in))
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", name, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.none != (log == nil):
			t.Errorf("%s: %+v", name, log)
		case log != nil && (len(log.Records) != c.records || log.Torn != c.torn):
			t.Errorf("%s: %d records, torn %v", name, len(log.Records), log.Torn)
		}
	}
}

func FuzzDecodeJournal(f *testing.F) {
	f.Add([]byte(`{"begin":{"version":1,"plan":"p","lineage":"l"}}` + "\n" + `{"intent":{"step":1,"instance":{"address":"a.x","attributes":{}}}}` + "\n"))
	f.Add([]byte(`{"begin":{"lineage":"l"}}` + "\n" + `{"outcome":{"step":1,"address":"a.x[0]","restores":true}}` + "\n" + `{"end":{}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := DecodeJournal(data)
		if err != nil || log == nil {
			return
		}
		log.Begin.Serial = 0
		st, _, err := Fold(nil, log)
		if err != nil {
			t.Fatalf("a journal that can be read cannot be folded: %v", err)
		}
		encoded, err := Encode(st)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(encoded); err != nil {
			t.Fatalf("what was folded cannot be read back: %v\n%s", err, encoded)
		}
	})
}

func FuzzDecode(f *testing.F) {
	st := New("0.2.0")
	st.Instances = []*Instance{{Addr: addr(f, "module.a[0].b.c"), Attributes: []byte(`{"x":[1,null]}`)}}
	data, err := Encode(st)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := Decode(data)
		if err != nil {
			return
		}
		encoded, err := Encode(st)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(encoded)
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		twice, err := Encode(again)
		if err != nil || string(twice) != string(encoded) {
			t.Fatalf("not the same twice: %v", err)
		}
	})
}

func BenchmarkJournal(b *testing.B) {
	s := lockedStore(b)
	j, err := s.StartJournal(Begin{Plan: "p", Lineage: "l"})
	if err != nil {
		b.Fatal(err)
	}
	i := instance(b, "a.x", `{"id":null}`)
	b.SetParallelism(5) // times GOMAXPROCS: as many as an apply has steps at once
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := j.Intent(Intent{Instance: i}); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	os.Remove(s.JournalPath())
}

package builtin

import (
	"testing"
)

// Every type is listed once, and has a name that says where it lives.
func TestSet(t *testing.T) {
	s := Set()
	seen := map[string]bool{}
	add := func(kind, name string) {
		if name == "" || seen[kind+name] {
			t.Errorf("%s %q is empty or listed twice", kind, name)
		}
		seen[kind+name] = true
	}
	for _, r := range s.Resources {
		add("resource ", r.Schema().Type)
		for _, after := range r.Schema().After {
			if !has(s.Resources, after) {
				t.Errorf("%s comes after %s, which does not exist", r.Schema().Type, after)
			}
		}
		for _, l := range r.Schema().LostOn {
			if !has(s.Resources, l.Type) {
				t.Errorf("%s is lost on %s, which does not exist", r.Schema().Type, l.Type)
			}
		}
	}
	for _, d := range s.Data {
		add("data ", d.Schema().Type)
	}
	for _, g := range s.Generators {
		add("generator ", g.Schema().Type)
	}
	if len(s.Resources) < 7 || s.HostObserver == nil || s.HostSchema == nil || s.OpenHost == nil || s.Snapshot == nil {
		t.Errorf("something is missing: %+v", s)
	}
}

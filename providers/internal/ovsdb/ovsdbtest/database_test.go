package ovsdbtest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/providers/internal/ovsdb"
)

// TestDatabaseSurvivesJSON: a database that is written and read again is the same.
func TestDatabaseSurvivesJSON(t *testing.T) {
	d := NewDatabase()
	_, err := d.Transact(ovsdb.Insert("Open_vSwitch", ovsdb.Row{"other_config": ovsdb.Map(map[string]string{"a": "1"}), "bridges": ovsdb.NamedUUID("b"), "next_cfg": 3}),
		ovsdb.Insert("Bridge", ovsdb.Row{"name": "br0", "protocols": ovsdb.Set("OpenFlow14")}).Named("b"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again := NewDatabase()
	if err := json.Unmarshal(b, again); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"Open_vSwitch", "Bridge"} {
		if diff := cmp.Diff(d.Rows(table), again.Rows(table)); diff != "" {
			t.Error(diff)
		}
	}
	if a, b := d.newID(), again.newID(); a != b {
		t.Error(a, b)
	}
}

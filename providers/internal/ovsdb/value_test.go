package ovsdb

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parse is a value as a server sends it.
func parse(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := decode(json.RawMessage(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMakeValues(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{Set("a", "b"), `["set",["a","b"]]`},
		{Set[int](), `["set",[]]`},
		{Set(UUID("u"), NamedUUID("n")), `["set",[["uuid","u"],["named-uuid","n"]]]`},
		{Map(map[string]string{"b": "2", "a": "1"}), `["map",[["a","1"],["b","2"]]]`},
		{Map(nil), `["map",[]]`},
		{Optional(""), `["set",[]]`},
		{Optional(5), `5`},
		{Select("T"), `{"op":"select","table":"T","where":[]}`},
		{Select("T", ByID("u")).Columns("a"), `{"columns":["a"],"op":"select","table":"T","where":[["_uuid","==",["uuid","u"]]]}`},
		{Insert("T", Row{"a": 1}).Named("n"), `{"op":"insert","row":{"a":1},"table":"T","uuid-name":"n"}`},
		{Wait("T", -1, []string{"a"}, "==", nil), `{"columns":["a"],"op":"wait","rows":[],"table":"T","until":"==","where":[]}`},
	} {
		got, err := json.Marshal(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
}

func TestReadValues(t *testing.T) {
	for _, c := range []struct{ got, want any }{
		{String(parse(t, `"a"`)), "a"},
		{String(parse(t, `["set",[]]`)), ""},
		{String(parse(t, `["set",["x"]]`)), "x"},
		{String(nil), ""},
		{Strings(parse(t, `["set",["b","a"]]`)), []string{"a", "b"}},
		{Strings(parse(t, `"a"`)), []string{"a"}},
		{Ints(parse(t, `["set",[3,9007199254740993]]`)), []int64{3, 9007199254740993}},
		{Bool(parse(t, `true`)), true},
		{Bool(parse(t, `["set",[]]`)), false},
		{ID(parse(t, `["uuid","u"]`)), "u"},
		{IDs(parse(t, `["set",[["uuid","u"],["uuid","v"]]]`)), []string{"u", "v"}},
		{ID(parse(t, `["set",[]]`)), ""},
		{StringMap(parse(t, `["map",[["k","v"]]]`)), map[string]string{"k": "v"}},
		{StringMap(parse(t, `"x"`)), map[string]string{}},
		{IntMap(parse(t, `["map",[["rx",12]]]`)), map[string]int64{"rx": 12}},
		{StringMap(Map(map[string]string{"k": "v"})), map[string]string{"k": "v"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
	if n, ok := Int(parse(t, `["set",[]]`)); ok || n != 0 {
		t.Error("a number in the empty set")
	}
}

func TestParseResults(t *testing.T) {
	ops := []Op{Insert("A", nil), Select("B")}
	for _, c := range []struct{ in, want string }{
		{`[{"uuid":["uuid","u"]},{"rows":[{"x":1}]}]`, ""},
		{`[{"error":"constraint violation","details":"why"},null]`, "the database refused to insert A (operation 1 of the transaction): constraint violation: why"},
		{`[{},{},{"error":"referential integrity violation"}]`, "the database refused the transaction: referential integrity violation"},
		{`[{}]`, "the answer to transact has 1 results for 2 operations"},
		{`[{},null]`, "the answer to transact has no result for operation 2 and no error"},
	} {
		_, err := parseResults(json.RawMessage(c.in), ops)
		if got := errText(err); got != c.want {
			t.Errorf("%s: %s", c.in, got)
		}
	}
	res, _ := parseResults(json.RawMessage(`[{"uuid":["uuid","u"]},{"rows":[{"x":1}]}]`), ops)
	if res[0].ID != "u" || len(res[1].Rows) != 1 {
		t.Error(res)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzValues: readers take any JSON without panic, and what they read from a map survives being written again.
func FuzzValues(f *testing.F) {
	for _, s := range []string{`["set",[1,"a",true]]`, `["map",[["a","b"],[1]]]`, `["uuid"]`, `["uuid",1]`, `[[],[]]`, `{"error":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		_, _ = parseResults(in, []Op{{}})
		var v any
		if decode(in, &v) != nil {
			return
		}
		_, _, _, _, _, _ = String(v), Strings(v), Ints(v), Bool(v), IDs(v), IntMap(v)
		m := StringMap(v)
		if diff := cmp.Diff(m, StringMap(Map(m))); diff != "" {
			t.Fatal(diff)
		}
	})
}

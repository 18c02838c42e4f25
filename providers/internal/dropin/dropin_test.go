package dropin

import (
	"errors"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/fake"
)

func mark(address string) providers.Mark { return providers.Mark{Testbed: "bed", Address: address} }

func TestPathIsOnesOwn(t *testing.T) {
	p := Path("/etc/sysctl.d", "zz-plumb", ".conf", mark(`module.a["x/../y"].host_sysctl.b["../.. \n$(x)"]`))
	if strings.Contains(strings.TrimPrefix(p, "/etc/sysctl.d/"), "/") || strings.ContainsAny(p, "* ?[$\n") || !strings.HasSuffix(p, ".conf") {
		t.Error(p)
	}
	if Path("/a", "p", "", mark("x.y")) == Path("/a", "p", "", providers.Mark{Testbed: "other", Address: "x.y"}) {
		t.Error("two testbeds share a file")
	}
}

func TestFiles(t *testing.T) {
	c, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, m := t.Context(), mark("host_sysctl.a")
	const file = "/etc/made.d/x.conf"
	for range 2 {
		if err := Write(ctx, c, file, m, "a = 1\n"); err != nil {
			t.Fatal(err)
		}
	}
	if body, there, err := Read(ctx, c, file, m); body != "a = 1\n" || !there || err != nil {
		t.Error(body, there, err)
	}
	other := mark("host_sysctl.b")
	if err := errors.Join(Write(ctx, c, file, other, ""), Remove(ctx, c, file, other)); !errors.Is(err, providers.ErrForeign) {
		t.Error("somebody else's file was not refused:", err)
	}
	for range 2 {
		if err := Remove(ctx, c, file, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, there, err := Read(ctx, c, file, m); there || err != nil {
		t.Error(there, err)
	}
}

// Two instances with lines in one file come and go in any order, and what others wrote stays.
func TestLines(t *testing.T) {
	for _, before := range []string{"", "a\nb\n", "no newline at the end"} {
		a, b := mark("a.a"), mark("b.b")
		text := []byte(before)
		for _, m := range []providers.Mark{a, b, a} {
			var err error
			if text, err = PutLine(text, m, "line of "+m.Address); err != nil {
				t.Fatal(err)
			}
		}
		if l, ok := Line(text, b); l != "line of b.b" || !ok {
			t.Error(l, ok)
		}
		text = TakeLine(text, a)
		if _, ok := Line(text, a); ok {
			t.Error("still there")
		}
		if l, ok := Line(text, b); l != "line of b.b" || !ok {
			t.Error(l, ok)
		}
		if got := string(TakeLine(TakeLine(text, b), b)); strings.TrimSuffix(got, "\n") != strings.TrimSuffix(before, "\n") {
			t.Errorf("%q became %q", before, got)
		}
	}
	if _, err := PutLine(nil, mark("a"), "x\ny"); !errors.Is(err, ErrLine) {
		t.Error(err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("a\n# Written by Plumb: testbed bed, a.a", "x")
	f.Add("# Written by Plumb: testbed bed, a.a\n# Written by Plumb: testbed bed, a.a\n", "")
	f.Fuzz(func(t *testing.T, file, line string) {
		m := mark("a.a")
		if _, there := Line([]byte(file), m); there {
			return
		}
		out, err := PutLine([]byte(file), m, line)
		if err != nil {
			return
		}
		if got, there := Line(out, m); !there || got != line {
			t.Errorf("%q in %q: found %q", line, file, got)
		}
	})
}

package graph

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// parse builds a graph from "a: b c" lines: a waits for b and c.
func parse(text string) *Graph[string] {
	g := &Graph[string]{}
	for line := range strings.Lines(text) {
		name, deps, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "" {
			continue
		}
		g.Add(name)
		for _, d := range strings.Fields(deps) {
			g.Connect(name, d, "reference")
		}
	}
	return g
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct{ name, graph, want string }{
		{"empty", "", ""},
		{"as added", "a\nb\nc", "a b c"},
		{"chain", "a: b\nb: c", "c b a"},
		{"diamond", "d: b c\nb: a\nc: a\ne", "a b c d e"},
		{"two edges are one", "a: b b", "b a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parse(tc.graph).Order()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Fatal(d)
			}
		})
	}
}

func TestCycles(t *testing.T) {
	for _, tc := range []struct {
		name, graph string
		want        [][]string
	}{
		{"none", "a: b c\nb: c", nil},
		{"self", "a: a\nb", [][]string{{"a"}}},
		{"two apart", "a: b\nb: a\nx: y\ny: z\nz: x\na: x", [][]string{{"a", "b"}, {"x", "y", "z"}}},
		{"shortest", "a: b\nb: c a\nc: a", [][]string{{"a", "b"}}},
		{"behind a tail", "t: a\na: b\nb: c\nc: a", [][]string{{"a", "b", "c"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := parse(tc.graph)
			if d := cmp.Diff(tc.want, g.Cycles()); d != "" {
				t.Fatal(d)
			}
			_, err := g.Order()
			var cycle *CycleError[string]
			if errors.As(err, &cycle) != (tc.want != nil) {
				t.Fatalf("Order: %v", err)
			}
		})
	}
	err := &CycleError[string]{[][]string{{"a", "b"}}}
	if err.Error() != "cycle: a -> b -> a" {
		t.Error(err)
	}
}

func TestLongChainHasNoCycle(t *testing.T) {
	g := &Graph[int]{}
	for i := range 200_000 {
		g.Connect(i, i+1, "reference")
	}
	order, err := g.Order()
	if err != nil || order[0] != 200_000 || order[200_000] != 0 {
		t.Fatal(err, order[0])
	}
}

func TestReachAndReverse(t *testing.T) {
	g := parse("a: b\nb: c\nd: c")
	if d := cmp.Diff(map[string]bool{"b": true, "c": true}, g.Reach("b")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]bool{"a": true, "b": true, "c": true, "d": true}, g.Reverse().Reach("c", "nobody")); d != "" {
		t.Error(d)
	}
	if !g.Reaches("a", "c") || g.Reaches("c", "a") || !g.Reaches("a", "a") {
		t.Error("Reaches")
	}
	if d := cmp.Diff(g.Nodes(), g.Reverse().Nodes()); d != "" {
		t.Error(d)
	}
}

func TestRender(t *testing.T) {
	g := &Graph[string]{}
	g.Connect(`m["x"].a`, "b", "host order")
	for name, got := range map[string]string{
		"graph.dot": g.DOT(func(s string) string { return s }),
		"graph.mmd": g.Mermaid(func(s string) string { return s }),
	} {
		golden(t, name, got)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: %s", name, d)
	}
}

// TestSchedule runs the scripts in testdata/*.txt: each command's answer must be what stands below it. A node "x@dut" is of group dut.
//
//	graph        builds the graph of the lines that follow
//	limit N [M]  starts the schedule: N at a time, M per group
//	next         what may start now, all of it
//	done K, fail K
//	report
func TestSchedule(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(data))
			golden(t, filepath.Base(file), got)
		})
	}
}

func runScript(t *testing.T, script string) string {
	var out strings.Builder
	var g *Graph[string]
	var s *Scheduler[string]
	for _, block := range strings.Split(strings.TrimSpace(script), "\n\n") {
		head, rest, _ := strings.Cut(block, "\n")
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		out.WriteString(head + "\n")
		f := strings.Fields(head)
		switch f[0] {
		case "#":
			out.WriteString(strings.TrimSuffix(rest, "\n"))
			if rest != "" {
				out.WriteString("\n")
			}
		case "graph":
			g = parse(rest)
			out.WriteString(rest + "\n")
		case "limit":
			var n, m int
			fmt.Sscan(strings.Join(f[1:], " "), &n, &m)
			var err error
			s, err = g.Schedule(Limits[string]{Parallelism: n,
				Group:    func(k string) string { _, h, _ := strings.Cut(k, "@"); return h },
				PerGroup: func(string) int { return m }})
			if err != nil {
				fmt.Fprintln(&out, err)
			}
		case "next":
			var all []string
			for k, ok := s.Next(); ok; k, ok = s.Next() {
				all = append(all, k)
			}
			fmt.Fprintf(&out, "-> %s\n", strings.Join(all, " "))
		case "done":
			s.Done(f[1], nil)
		case "fail":
			s.Done(f[1], errors.New("broken"))
		case "report":
			r := s.Report()
			for _, k := range g.Nodes() {
				if err := r.Failed[k]; err != nil {
					fmt.Fprintf(&out, "failed %s: %v\n", k, err)
				}
				if c, ok := r.Skipped[k]; ok {
					fmt.Fprintf(&out, "skipped %s because of %s\n", k, c)
				}
			}
			fmt.Fprintf(&out, "not started: %s\n", strings.Join(r.NotStarted, " "))
		default:
			t.Fatalf("unknown command %q", head)
		}
	}
	return out.String()
}

func TestWalk(t *testing.T) {
	g := &Graph[int]{}
	for i := range 300 {
		g.Add(i)
		for _, d := range []int{i / 2, i / 3} {
			if d != i {
				g.Connect(i, d, "reference")
			}
		}
	}
	var running, most, odd atomic.Int32
	var mu sync.Mutex
	var seen []int
	r, err := g.Walk(t.Context(), Limits[int]{Parallelism: 7, Group: func(k int) string { return []string{"", "odd"}[k%2] }, PerGroup: func(string) int { return 2 }},
		func(k int) error {
			if n := running.Add(1); n > 7 {
				t.Errorf("%d at a time", n)
			} else if n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			if k%2 == 1 {
				if odd.Add(1) > 2 {
					t.Error("too many of one group")
				}
				defer odd.Add(-1)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, e := range g.After(k) {
				if !slices.Contains(seen, e.To) {
					t.Errorf("%d ran before %d", k, e.To)
				}
			}
			seen = append(seen, k)
			return nil
		})
	if err != nil || len(seen) != 300 || len(r.Failed)+len(r.Skipped)+len(r.NotStarted) != 0 {
		t.Fatal(err, len(seen), r)
	}
}

func TestWalkFailure(t *testing.T) {
	g := parse("a\nb: a\nc: b\nd\ne: d c")
	broken := errors.New("broken")
	r, err := g.Walk(t.Context(), Limits[string]{Parallelism: 3}, func(k string) error {
		if k == "b" {
			return broken
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed["b"] != broken || len(r.Failed) != 1 {
		t.Error(r.Failed)
	}
	if d := cmp.Diff(map[string]string{"c": "b", "e": "b"}, r.Skipped); d != "" {
		t.Error(d)
	}
}

func TestWalkCancelStartsNothingNew(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ran []string
	r, err := parse("a\nb: a\nc: b").Walk(ctx, Limits[string]{Parallelism: 1}, func(k string) error {
		ran = append(ran, k)
		if k == "b" {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a", "b"}, ran); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"c"}, r.NotStarted); d != "" {
		t.Error(d)
	}
}

func TestWalkCycle(t *testing.T) {
	_, err := parse("a: b\nb: a").Walk(t.Context(), Limits[string]{}, func(string) error { t.Error("visited"); return nil })
	if err == nil {
		t.Fatal("a cycle was walked")
	}
}

func BenchmarkOrder(b *testing.B) {
	for b.Loop() {
		g := &Graph[int]{}
		for i := range 20_000 {
			g.Connect(i, 20_000+i%100, "reference")
		}
		if _, err := g.Order(); err != nil {
			b.Fatal(err)
		}
	}
}

package report

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"plumb/stages/bench"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (run with -update when that is wanted):\n%s", name, d)
	}
}

func page1(t *testing.T, run *bench.Run) string {
	t.Helper()
	got, err := HTML(run)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestGolden(t *testing.T) {
	golden(t, "sample.html", []byte(page1(t, sample())))
	golden(t, "sweep.html", []byte(page1(t, sweep())))
	golden(t, "found.html", []byte(page1(t, found())))
	golden(t, "found.md", Markdown(found()))
	golden(t, "found.csv", FiguresCSV(found()))
	golden(t, "found.txt", []byte(Table(found(), 120)))
	golden(t, "sample.md", Markdown(sample()))
	golden(t, "sample.csv", CSV(sample()))
	golden(t, "sample.txt", []byte(Table(sample(), 120)))
	golden(t, "sample-60.txt", []byte(Table(sample(), 60)))
}

func TestTableKeepsToItsWidth(t *testing.T) {
	for _, width := range []int{60, 80, 100, 120, 200} {
		for line := range strings.Lines(Table(sample(), width)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("width %d: %d characters: %s", width, n, line)
			}
		}
	}
	if Table(sample(), 0) != Table(sample(), 80) {
		t.Error("an unknown width is not 80")
	}
}

// The page is one file that works anywhere: no script, nothing loaded, well-formed pictures, every link inside.
func TestPageIsSelfContained(t *testing.T) {
	for name, run := range map[string]*bench.Run{"sample": sample(), "sweep": sweep(), "found": found(), "empty": {}} {
		html := page1(t, run)
		for _, bad := range []string{"<script", "http://", "https://", " src=", "@import", "<link", "@font-face", "ZgotmplZ", "NaN", "Inf"} {
			if strings.Contains(html, bad) {
				t.Errorf("%s: the page holds %s", name, bad)
			}
		}
		for _, url := range regexp.MustCompile(`url\(([^)]*)\)|href="([^"]*)"`).FindAllStringSubmatch(html, -1) {
			target := url[1] + url[2]
			if !strings.HasPrefix(target, "#") || !strings.Contains(html, `id="`+target[1:]+`"`) {
				t.Errorf("%s: %s leads nowhere", name, target)
			}
		}
		for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1) {
			dec := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := dec.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %s", name, err, svg)
				}
			}
			if !strings.Contains(svg, `aria-hidden="true"`) && !strings.Contains(svg, "aria-label=") {
				t.Errorf("%s: a picture without words: %.80s", name, svg)
			}
		}
	}
}

func TestPageEscapes(t *testing.T) {
	const evil = `<b onload=x>&"'|*`
	run := sample()
	b := &run.Benchmarks[0]
	b.Addr, b.Error, b.Tool, b.Path = evil, evil, evil, []string{evil}
	b.Trials[0].Ledger[1].Name, b.Trials[0].Reasons = evil, []string{evil}
	run.Hosts[0].Rows[0] = [2]string{evil, evil}
	if html := page1(t, run); strings.Contains(html, "<b onload") {
		t.Error("a name got into the page as markup")
	}
	if md := string(Markdown(run)); strings.Contains(md, "<b onload") {
		t.Error("a name got into the Markdown page as markup")
	}
}

// A rate that was measured without a search for zero loss must not be called by RFC 2544's word for one.
func TestContinuousIsNotCalledThroughput(t *testing.T) {
	for name, text := range map[string]string{"html": page1(t, sample()), "markdown": string(Markdown(sample())), "table": Table(sample(), 120)} {
		text = strings.ReplaceAll(text, "It is not RFC 2544 throughput", "")
		if strings.Contains(strings.ToLower(text), "throughput") {
			t.Errorf("%s calls something throughput", name)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second replaces the first
		paths, err := Write(dir, sample())
		if err != nil || len(paths) != 5 {
			t.Fatalf("%v %v", paths, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%v %v", entries, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	var back bench.Run
	if err != nil || json.Unmarshal(data, &back) != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample(), &back); d != "" {
		t.Error(d)
	}
	if _, err := Write(filepath.Join(dir, "missing"), sample()); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{grouped(0), "0"}, {grouped(999), "999"}, {grouped(1000), "1,000"}, {grouped(int64(-1234567)), "−1,234,567"}, {grouped(uint64(math.MaxUint64)), "18,446,744,073,709,551,615"},
		{significant(0), "0"}, {significant(2.3149), "2.31"}, {significant(23.149), "23.1"}, {significant(999.6), "1000"}, {significant(9.996), "10.0"}, {significant(0.01234), "0.0123"}, {significant(-5), "-5.00"},
		{rate(0), "0 pps"}, {rate(37_000), "37.0 kpps"}, {rate(14_880_952), "14.9 Mpps"}, {bits(1.55e9), "1.55 Gbit/s"}, {bits(9e5), "900 kbit/s"},
		{percentOf(0), "0 %"}, {percentOf(1e-7), "1.0e-5 %"}, {percentOf(0.0005), "0.050 %"}, {percentOf(0.1234), "12.34 %"}, {percentOf(1), "100.00 %"}, {percentOf(0.99999), ">99.99 %"},
		{short(1500 * time.Millisecond), "1.5 s"}, {short(93 * time.Second), "1m33s"}, {short(2 * time.Minute), "2m"},
		{plural(1, "trial"), "1 trial"}, {plural(1200, "flow"), "1,200 flows"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func FuzzNice(f *testing.F) {
	for _, v := range []float64{0, 1, 9.99, 10, 14.88, 1e-9, 123456789} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if v < 0 || v > 1e15 || v != 0 && v < 1e-12 || math.IsNaN(v) {
			return
		}
		top, step := nice(v)
		if n := top / step; top < v*0.999 || top > max(1, v*2) || n < 2.9 || n > 5.1 {
			t.Errorf("%v: axis to %v in steps of %v", v, top, step)
		}
	})
}

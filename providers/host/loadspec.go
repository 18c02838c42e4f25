package host

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
)

// loadSpec is one load block: what stress-ng's command line is made of.
type loadSpec struct {
	kind    string // cpu, memory, cache
	workers int
	percent int    // of kind cpu
	size    uint64 // bytes that all workers of kind memory take together
	cores   cpuset.Set
	method  string
}

// stressors are stress-ng's names (stress-ng(1)) of the kinds.
func stressors() map[string]string {
	return map[string]string{"cpu": "cpu", "memory": "vm", "cache": "cache"}
}

// Schema of the benchmark's load block.
func (Load) Schema() *schema.Block {
	opt := func(t cty.Type, def cty.Value, what string) *schema.Attribute {
		return &schema.Attribute{Type: t, Optional: true, Default: def, Description: what, Cost: schema.Live}
	}
	a := map[string]*schema.Attribute{
		"kind": {Type: cty.String, Required: true, OneOf: []string{"cpu", "memory", "cache"},
			Description: "What is loaded: cpu computes, memory writes and checks memory, cache thrashes the caches."},
		"workers": opt(cty.Number, cty.NilVal, "Processes, 1 to 4096. Without it one for each of cores, or one."),
		"load":    opt(cty.Number, cty.NilVal, "Percent of the time that each worker of kind cpu computes, 1 to 100; 100 without it. It is steady only where a worker is not pinned."),
		"size":    opt(cty.String, cty.NilVal, "Memory that all workers of kind memory take together, such as 512M or 2G; 256M without it. It must be available when the load starts."),
		"cores":   opt(cty.String, cty.NilVal, "CPUs that the workers may run on, as a list: 2,4-7. Without it the scheduler chooses."),
		"method":  opt(cty.String, cty.NilVal, "How kind cpu computes or kind memory writes: a name that stress-ng's --cpu-method or --vm-method knows. Without it all in turns."),
	}
	a["workers"].Validate = schema.Whole(1, 4096)
	a["load"].Validate = schema.Whole(1, 100)
	a["size"].Validate = func(v cty.Value) error { _, err := parseBytes(v.AsString()); return err }
	a["cores"].Validate = func(v cty.Value) error {
		s, err := cpuset.Parse(v.AsString())
		if err == nil && s.IsEmpty() {
			err = errors.New("it lists no CPU")
		}
		return err
	}
	a["method"].Validate = func(v cty.Value) error {
		if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`).MatchString(v.AsString()) {
			return fmt.Errorf("%q is not a name such as fft", v.AsString())
		}
		return nil
	}
	return &schema.Block{Attributes: a, Description: "Disturbs a host on purpose while it is measured, by stress-ng: what VSPERF calls cpu_load and mem_load. It runs from before the first trial until after the last."}
}

// parseBytes reads "512M", "2G" and the like; a plain number is bytes.
func parseBytes(s string) (uint64, error) {
	m := regexp.MustCompile(`^(\d{1,12})([kKmMgGtT]?)(i?[bB])?$`).FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, fmt.Errorf("%q is not a size such as 512M or 2G", s)
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	shift := map[string]uint{"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[strings.ToLower(m[2])]
	if err != nil || n == 0 || n > 1<<50>>shift {
		return 0, fmt.Errorf("%q is not a size of memory", s)
	}
	return n << shift, nil
}

// readLoad decodes a known load block, and refuses arguments that its kind does not use.
func readLoad(v cty.Value) (loadSpec, error) {
	s := loadSpec{kind: v.GetAttr("kind").AsString(), percent: 100, size: 256 << 20}
	given := func(name string) bool { return !v.GetAttr(name).IsNull() }
	for name, kinds := range map[string]string{"load": "cpu", "size": "memory", "method": "cpu memory"} {
		if given(name) && !strings.Contains(kinds, s.kind) {
			return s, fmt.Errorf("a load of kind %s has no %s: that is for kind %s", s.kind, name, strings.ReplaceAll(kinds, " ", " and "))
		}
	}
	var err error
	if given("cores") {
		if s.cores, err = cpuset.Parse(v.GetAttr("cores").AsString()); err != nil {
			return s, fmt.Errorf("cores: %w", err)
		}
	}
	s.workers = max(1, s.cores.Len())
	for name, into := range map[string]*int{"workers": &s.workers, "load": &s.percent} {
		if given(name) {
			n, _ := v.GetAttr(name).AsBigFloat().Int64()
			*into = int(n)
		}
	}
	if given("size") {
		if s.size, err = parseBytes(v.GetAttr("size").AsString()); err != nil {
			return s, fmt.Errorf("size: %w", err)
		}
	}
	if given("method") {
		s.method = v.GetAttr("method").AsString()
	}
	return s, nil
}

// argv is the command line. Files that a stressor may make go to dir.
func (s loadSpec) argv(dir string) []string {
	name := stressors()[s.kind]
	a := []string{"stress-ng", "--timeout", "0", "--temp-path", dir, "--" + name, strconv.Itoa(s.workers)}
	if !s.cores.IsEmpty() {
		a = append(a, "--taskset", s.cores.String())
	}
	switch s.kind {
	case "cpu":
		a = append(a, "--cpu-load", strconv.Itoa(s.percent))
	case "memory":
		a = append(a, "--vm-bytes", strconv.FormatUint(s.size, 10))
	case "cache":
		a = append(a, "--cache-no-affinity") // else it wanders over all CPUs, wherever it was pinned to
	}
	if s.method != "" {
		a = append(a, "--"+name+"-method", s.method)
	}
	return a
}

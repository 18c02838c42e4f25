package bootargs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	got := Words("BOOT_IMAGE=/vmlinuz ro  hugepagesz=1G hugepages=8\thugepagesz=2M dyndbg=\"file a.c +p\" x\n")
	want := []string{"BOOT_IMAGE=/vmlinuz", "ro", "hugepagesz=1G", "hugepages=8", "hugepagesz=2M", "dyndbg=\"file a.c +p\"", "x"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzWords(f *testing.F) {
	f.Add("a b=\"c d\" e")
	f.Fuzz(func(t *testing.T, s string) {
		w := Words(s)
		if strings.Count(s, "\"")%2 == 0 && !slices.Equal(Words(strings.Join(w, " ")), w) {
			t.Errorf("%q is %q, which is %q", s, w, Words(strings.Join(w, " ")))
		}
	})
}

func TestValid(t *testing.T) {
	for in, ok := range map[string]bool{"iommu=pt": true, "isolcpus=managed_irq,domain,1-3": true, "hugepages=0:8,1:8": true, "quiet": true, "vfio_iommu_type1.allow_unsafe_interrupts=1": true,
		"": false, "a b": false, "a\nb": false, "a;b": false, "$(id)": false, "`id`": false, "a\"b": false, "a'b": false, "a\\b": false, "a|b": false, "a\x00": false, "-r": false, "=x": false, "a=é": false,
		"root=/dev/sda1": false, "init=/bin/sh": false, "initrd=x": false, "rw": false} {
		if err := Valid(in); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct{ line, args, want string }{
		"all there":                  {"ro a=1 b", "b a=1", ""},
		"another value":              {"a=1", "a=2", "a=2"},
		"dash is underscore":         {"rcu-nocbs=1-3", "rcu_nocbs=1-3", ""},
		"but not in values":          {"a=x-y", "a=x_y", "a=x_y"},
		"a flag is no value":         {"quiet=", "quiet", "quiet"},
		"pages follow their size":    {"hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=4", "hugepagesz=2M hugepages=8", "hugepagesz=2M hugepages=8"},
		"pages that do":              {"hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=4", "hugepagesz=2M hugepages=4", ""},
		"another argument's endings": {"intel_iommu=on", "iommu=on", "iommu=on"},
	} {
		if got := strings.Join(Missing(Words(tc.line), Words(tc.args)), " "); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What others set is left alone, and comes back when ours goes, in its place.
func TestEdit(t *testing.T) {
	for name, tc := range map[string]struct{ before, args, during string }{
		"added":                 {"ro quiet", "iommu=pt nosmt", "ro quiet iommu=pt nosmt"},
		"there already":         {"ro iommu=pt quiet", "iommu=pt", "ro iommu=pt quiet"},
		"another value":         {"ro iommu=off quiet iommu=nopt", "iommu=pt", "ro iommu=pt quiet"},
		"many":                  {"console=tty0 ro", "console=ttyS0", "console=tty0 ro console=ttyS0"},
		"many, there already":   {"console=tty0 ro", "console=tty0", "console=tty0 ro"},
		"pages of another size": {"hugepagesz=1G hugepages=2 ro", "hugepagesz=2M hugepages=2", "hugepagesz=1G hugepages=2 ro hugepagesz=2M hugepages=2"},
		"spelled otherwise":     {"rcu-nocbs=1 ro", "rcu_nocbs=2", "rcu_nocbs=2 ro"},
	} {
		args := Words(tc.args)
		found := Found(nil).Find(Words(tc.before), args)
		during := edit(Words(tc.before), found, args)
		if got := strings.Join(during, " "); got != tc.during {
			t.Errorf("%s: %q", name, got)
		}
		if again := edit(during, found, args); !slices.Equal(again, during) {
			t.Errorf("%s, again: %q", name, again)
		}
		after := strings.Join(edit(during, found, nil), " ")
		if want := strings.ReplaceAll(tc.before, "iommu=off quiet iommu=nopt", "iommu=off iommu=nopt quiet"); after != want {
			t.Errorf("%s, taken out: %q", name, after)
		}
	}
}

// Two instances and their updates come and go in any order.
func TestEditOfTwo(t *testing.T) {
	before := Words("ro a=0 quiet")
	x, y := Words("a=1 hugepagesz=1G hugepages=8"), Words("b=2 hugepagesz=2M hugepages=8")
	fx, fy := Found(nil).Find(before, x), Found(nil).Find(before, y)
	words := edit(edit(before, fx, x), fy, y)
	x2 := Words("a=3 c")
	fx = fx.Find(words, x2)
	words = edit(words, fx, x2)
	if got := strings.Join(words, " "); got != "ro a=3 quiet b=2 hugepagesz=2M hugepages=8 c" {
		t.Error(got)
	}
	if got := edit(edit(words, fx, nil), fy, nil); !slices.Equal(got, before) {
		t.Error(got)
	}
	if got := edit(edit(words, fy, nil), fx, nil); !slices.Equal(got, before) {
		t.Error(got)
	}
}

// What somebody else has set since is not ours.
func TestEditLeavesOthers(t *testing.T) {
	found := Found(nil).Find(Words("ro"), Words("a=1 b"))
	if got := strings.Join(edit(Words("ro a=7"), found, nil), " "); got != "ro a=7" {
		t.Error(got)
	}
	if got := strings.Join(found.Ours(), " "); got != "a=1 b" {
		t.Error(got)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("ro a=0 quiet", "a=1 b")
	f.Add("hugepagesz=1G hugepages=8 hugepages=8", "hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=8")
	f.Fuzz(func(t *testing.T, line, text string) {
		var args []string
		seen := map[string]bool{}
		for _, u := range units(Words(text)) {
			if !seen[u.key()] {
				seen[u.key()] = true
				args = append(args, u...)
			}
		}
		before := Words(line)
		found := Found(nil).Find(before, args)
		during := edit(before, found, args)
		sorted := func(w []string) []string { return slices.Sorted(slices.Values(w)) }
		if after := edit(during, found, nil); len(units(args)) == len(args) && !slices.Equal(sorted(slices.Compact(sorted(after))), slices.Compact(sorted(before))) {
			t.Errorf("%q with %q is %q, and without again %q", before, args, during, after)
		}
	})
}

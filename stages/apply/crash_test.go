package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// The crash test runs this test binary again as a Plumb that is killed with SIGKILL at the n-th of the points that the store, the journal, the run and
// the providers tell of, for every n. What the parent asks for is in the environment.
const crashEnv = "PLUMB_TEST_CRASH" // "DIR OPERATION N"

func TestMain(m *testing.M) {
	if job := os.Getenv(crashEnv); job != "" {
		os.Exit(victim(job))
	}
	os.Exit(m.Run())
}

// The testbed of the crash test in two versions. The second changes values, replaces in both ways, and has something less and something more.
const common = `
host "dut" {}

resource "box" "b" {
  name    = var.second ? "bb" : "b"
  content = box.a.id
  slot { in = box.a.id }
  lifecycle { create_before_destroy = true }
}

resource "note" "n" {
  input = box.b.id
}

data "look" "l" {
  id = note.n.output
}

resource "box" "c" {
  name    = var.second ? "cc" : "c"
  content = "seen ${data.look.l.id}"
}

variable "second" { type = bool }

output "id" { value = box.b.id }
`

var versions = map[string]string{
	"first": common + `
resource "knob" "k" {
  name  = "k"
  value = "5"
}

resource "box" "a" {
  name       = "a"
  content    = "A"
  depends_on = [knob.k]
}

resource "box" "old" { name = "old" }
`,
	"second": common + `
resource "knob" "k" {
  name  = "k"
  value = "6"
}

resource "box" "a" {
  name       = "a"
  content    = "AA"
  depends_on = [knob.k]
}

resource "box" "new" { name = "new" }
`,
	// Two with settings that take effect with a reboot; the second also takes one of them back.
	"fused": fused + `
resource "fuse" "f" {
  name  = "f"
  value = "new"
}

resource "fuse" "g" {
  name  = "g"
  value = "x"
}
`,
	"refused": fused + `
resource "fuse" "f" {
  name  = "f"
  value = "newer"
}
`,
}

const fused = `
variable "second" { type = bool }

host "dut" {}

resource "knob" "k" {
  name  = "k"
  value = "5"
}

resource "lamp" "l" {
  name       = "l"
  depends_on = [fuse.f]
}
`

func operate(dir, operation string, crash func(string)) error {
	w := &world{dir: filepath.Join(dir, "world"), crash: crash}
	ctx := context.Background()
	s, err := Open(ctx, newStore(dir, crash), "0.2.0", 0, operation)
	if err != nil {
		return err
	}
	defer s.Close()
	l := newLine(w.set(), versions[operation], map[string]cty.Value{"second": cty.BoolVal(operation == "second")})
	in, err := l.plan(ctx, s)
	if err != nil {
		return err
	}
	in.Options.Parallelism, in.Options.Crash = 1, crash
	res, diags, err := s.Apply(ctx, in)
	if err == nil && diags.HasErrors() {
		err = diags
	}
	if err == nil && !res.Applied {
		err = fmt.Errorf("not applied: %w", res.Diagnostics())
	}
	return err
}

// victim is the process that gets killed. It ends by itself with 0 when there are fewer points than asked for.
func victim(job string) int {
	var dir, operation string
	var at int
	if _, err := fmt.Sscan(job, &dir, &operation, &at); err != nil {
		fmt.Println(err)
		return 2
	}
	n := 0
	err := operate(dir, operation, func(string) {
		if n++; n == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal is delivered
		}
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// kill runs an operation in a process of its own, killed at a point. survived says that it has fewer points.
func kill(t *testing.T, dir, operation string, at int) (survived bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+dir+" "+operation+" "+strconv.Itoa(at))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err == nil {
		return true
	}
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return false
	}
	t.Fatalf("%s killed at %d: %v\n%s", operation, at, err, out)
	return false
}

func TestKilledAnywhere(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string // operations that are not disturbed
		killed string
		again  string // goes on after the kill; "" for nothing but the destroy
	}{
		{"apply", nil, "first", "first"},
		{"apply and then only destroy", nil, "first", ""},
		{"change", []string{"first"}, "second", "second"},
		{"change and go back", []string{"first"}, "second", "first"},
		{"destroy", []string{"first", "second"}, "destroy", ""},
		{"destroy and apply after all", []string{"first"}, "destroy", "second"},
		{"apply with a reboot", nil, "fused", "fused"},
		{"apply with a reboot and then only destroy", nil, "fused", ""},
		{"change with a reboot", []string{"fused"}, "refused", "refused"},
		{"change with a reboot and go back", []string{"fused"}, "refused", "fused"},
		{"destroy with a reboot", []string{"fused"}, "destroy", ""},
		{"destroy with a reboot and apply after all", []string{"fused"}, "destroy", "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := killing{start: made(t, c.before...), killed: c.killed, again: c.again, original: worldIn(made(t)).snapshot()}
			if c.again != "" {
				k.want = worldIn(made(t, c.again)).snapshot()
			}
			points := 0
			for at := 1; !k.once(t, at); at++ {
				points++
			}
			if points < 30 {
				t.Errorf("only %d points were tried", points)
			}
			t.Logf("killed at %d points", points)
		})
	}
}

// made is a folder after operations that nothing disturbed.
func made(t *testing.T, operations ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := makeWorld(worldIn(dir)); err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		if err := operate(dir, o, nil); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func worldIn(dir string) *world { return &world{dir: filepath.Join(dir, "world")} }

// killing is one scenario.
type killing struct {
	start         string // folder that each try starts from a copy of
	killed, again string
	original      string // the world before everything
	want          string // the world after again, had nothing been killed
}

// once kills at one point, kills what follows too, and sees whether everything ends well. survived says that there is no such point.
func (k *killing) once(t *testing.T, at int) (survived bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(k.start)); err != nil {
		t.Fatal(err)
	}
	w := worldIn(dir)
	do := func(operation string) {
		t.Helper()
		if err := operate(dir, operation, nil); err != nil {
			t.Fatalf("%s, after %s was killed at point %d: %v", operation, k.killed, at, err)
		}
	}
	survived = kill(t, dir, k.killed, at)
	if k.again != "" {
		kill(t, dir, k.again, 1+at%23) // also the recovery
		do(k.again)
		if d := cmp.Diff(k.want, w.snapshot()); d != "" {
			t.Errorf("%s killed at point %d: the world after %s is not as it would be without: %s", k.killed, at, k.again, d)
		}
		k.noChanges(t, dir, at)
	}
	kill(t, dir, "destroy", 1+at%19)
	do("destroy")
	if d := cmp.Diff(k.original, w.snapshot()); d != "" {
		t.Errorf("%s killed at point %d: destroy does not restore: %s", k.killed, at, d)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		switch filepath.Base(f) {
		case "world", "plumb.state.json", "plumb.state.json.backup":
		default:
			t.Errorf("%s killed at point %d: %s is left", k.killed, at, f)
		}
	}
	return survived
}

// noChanges wants the plan after again to be empty.
func (k *killing) noChanges(t *testing.T, dir string, at int) {
	t.Helper()
	s, err := Open(t.Context(), newStore(dir, nil), "0.2.0", 0, "plan")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := newLine(worldIn(dir).set(), versions[k.again], map[string]cty.Value{"second": cty.BoolVal(k.again == "second")}).plan(t.Context(), s)
	if err != nil || len(in.Plan.Steps) > 0 {
		t.Errorf("%s killed at point %d: the plan after %s is not empty: %+v, %v", k.killed, at, k.again, in.Plan.Steps, err)
	}
}

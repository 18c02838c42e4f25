package host

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/marked"
)

// Load is the loads that disturb a host on purpose, made by stress-ng. One is a supervised process with the mark in its environment and a folder
// /run/plumb/TESTBED/load/NAME. Its workers (loadworkers.go) write their titles over their environment, so they are known by their session.
type Load struct{}

var _ providers.Loader = Load{}

// Start starts stress-ng and returns when each of its workers runs. The stop that it returns may be called twice.
func (Load) Start(ctx context.Context, h providers.Host, mark providers.Mark, config cty.Value) (func(context.Context) error, error) {
	if h == nil {
		return nil, errors.New("a load disturbs a host, and none is given")
	}
	s, err := readLoad(config)
	if err != nil {
		return nil, err
	}
	if err := s.possible(ctx, h); err != nil {
		return nil, err
	}
	r := stress{marked.Process{Conn: h.Conn(), Mark: mark, Dir: path.Join(marked.Group(mark.Testbed, "load"), marked.Name(mark.Address))}}
	err = r.Conn.Start(ctx, providers.Process{Dir: r.Dir, Args: s.argv(r.Dir), Env: marked.Environment(mark)})
	if err == nil {
		err = r.await(ctx, s)
	}
	if err == nil {
		return r.end, nil
	}
	err = fmt.Errorf("start a load of kind %s on %s: %w", s.kind, h.Name(), err)
	if undo := r.end(context.WithoutCancel(ctx)); undo != nil {
		err = errors.Join(err, fmt.Errorf("clean up: %w", undo))
	}
	return nil, err
}

// possible says what would keep the load from being what was asked for. stress-ng itself goes on without memory that it does not get.
func (s loadSpec) possible(ctx context.Context, h providers.Host) error {
	var exit *providers.ExitError
	if _, err := h.Conn().Run(ctx, providers.Cmd{Args: []string{"which", "stress-ng"}}); errors.As(err, &exit) {
		return fmt.Errorf("there is no stress-ng on %s, which makes the load. Debian, Ubuntu and Fedora have it in the package stress-ng: apt-get install stress-ng", h.Name())
	} else if err != nil {
		return err
	}
	f, err := h.Facts(ctx)
	if err != nil {
		return err
	}
	online := map[int]bool{}
	for _, c := range f.CPUs {
		online[c.ID] = c.Online
	}
	for c := range s.cores.All() {
		if !online[c] {
			return fmt.Errorf("%s has no CPU %d online for the load's cores = %q", h.Name(), c, s.cores)
		}
	}
	if s.kind != "memory" {
		return nil
	}
	files, err := h.Conn().ReadFiles(ctx, "/proc/meminfo")
	if err != nil {
		return err
	}
	if kb, ok := keyed(string(files["/proc/meminfo"]), "MemAvailable"); ok && s.size > kb<<10 {
		return fmt.Errorf("the load wants size = %d MiB of memory, and %s has %d MiB available: a smaller size leaves the host usable", s.size>>20, h.Name(), kb>>10)
	}
	return nil
}

// Sweep ends the loads of a testbed that a Plumb which was killed left, workers without a parent included.
func (Load) Sweep(ctx context.Context, h providers.Host, testbed string) error {
	if h == nil {
		return errors.New("loads are swept on a host, and none is given")
	}
	files, err := h.Conn().ReadFiles(ctx, path.Join(marked.Group(testbed, "load"), "*", "pid"))
	if err != nil {
		return err
	}
	var errs []error
	for name := range files {
		r := stress{marked.Process{Conn: h.Conn(), Mark: providers.Mark{Testbed: testbed}, Dir: path.Dir(name)}}
		if err := r.end(ctx); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s on %s: %w", r.Dir, h.Name(), err))
		}
	}
	return errors.Join(errs...)
}

package dpdk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"plumb/providers"
)

// stop ends the process, politely first, and removes its folder, its sockets and DPDK's runtime folder. Without any of them it does nothing.
func (in *instance) stop(ctx context.Context, s spec) error {
	p, err := in.find(ctx)
	if err != nil {
		return err
	}
	ran, err := in.noted(ctx)
	if err != nil {
		return err
	}
	specs := []spec{s, leftBy(ran)} // it may have run with other arguments than are recorded
	if p != nil {
		if err := in.end(ctx); err != nil {
			return err
		}
	}
	if err := in.settle(ctx); err != nil {
		return err
	}
	for _, s := range specs {
		// A socket that is somebody else's by now stays.
		if err := in.clear(ctx, s); err != nil && !errors.Is(err, providers.ErrForeign) {
			return err
		}
		if err := in.remove(ctx, in.dir, path.Join(dpdkDir, s.prefix)); err != nil {
			return err
		}
	}
	return in.tidyFolders(ctx, specs)
}

// leftBy is what of a command line leaves something behind: the file prefix and the sockets. An argument that is not understood is left out.
func leftBy(argv []string) spec {
	var s spec
	for i, a := range argv[:max(0, len(argv)-1)] {
		switch next := argv[i+1]; a {
		case "--file-prefix":
			s.prefix = tidy(next)
		case "--vdev":
			p := port{server: strings.Contains(next+",", ",server=1,")}
			for part := range strings.SplitSeq(next, ",") {
				if v, ok := strings.CutPrefix(part, "path="); ok && strings.HasPrefix(next, "net_virtio_user") {
					p.socket = v
				}
			}
			s.ports = append(s.ports, p)
		}
	}
	return s
}

// end ends a process that find has found.
func (in *instance) end(ctx context.Context) error {
	text, _, err := in.log(ctx)
	if err != nil {
		return err
	}
	steps := []func(pid int) error{
		func(int) error { return in.say(ctx, "quit") },
		func(pid int) error { return in.signal(ctx, "TERM", pid) },
		func(pid int) error { return in.signal(ctx, "KILL", pid) },
	}
	if !atPrompt(text) {
		steps = steps[1:] // nobody reads the console yet
	}
	for _, step := range steps {
		p, err := in.find(ctx)
		if err != nil || p == nil {
			return err
		}
		if err := step(p.pid); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		err = poll(ctx, quitLimit, func() (bool, error) {
			p, err := in.find(ctx)
			return p == nil, err
		})
		if !errors.Is(err, errLimit) {
			return err
		}
	}
	return fmt.Errorf("testpmd of %s does not end, not by SIGKILL either: its folder is %s", in.mark.Address, in.dir)
}

func (in *instance) signal(ctx context.Context, sig string, pid int) error {
	_, err := in.conn.Run(ctx, providers.Cmd{Args: []string{"kill", "-" + sig, strconv.Itoa(pid)}})
	return err
}

// say types a line into the console. A FIFO that nobody reads is an error rather than a wait.
func (in *instance) say(ctx context.Context, line string) error {
	_, err := in.conn.Run(ctx, providers.Cmd{Args: []string{"dd", "of=" + path.Join(in.dir, "stdin"), "oflag=nonblock", "conv=nocreat,notrunc", "status=none"}, Stdin: []byte(line + "\n")})
	if err != nil {
		return fmt.Errorf("type %q into testpmd's console: %w", line, err)
	}
	return nil
}

// tidyFolders removes folders of Plumb's that are empty now.
func (in *instance) tidyFolders(ctx context.Context, specs []spec) error {
	var dirs []string
	for d := path.Dir(in.dir); strings.HasPrefix(d, runDir+"/"); d = path.Dir(d) {
		dirs = append(dirs, d)
	}
	for _, s := range specs {
		for _, sock := range s.sockets() {
			if d := path.Dir(sock); strings.HasPrefix(d, runDir+"/") && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	for _, d := range append(dirs, runDir) {
		var exit *providers.ExitError
		if _, err := in.conn.Run(ctx, providers.Cmd{Args: []string{"rmdir", d}}); err != nil && !errors.As(err, &exit) {
			return err
		}
	}
	return nil
}

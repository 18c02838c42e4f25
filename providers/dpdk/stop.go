package dpdk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"plumb/providers"
	"plumb/providers/internal/marked"
)

// stop ends the process, politely first, and removes its folder, its sockets and DPDK's runtime folder. Without any of them it does nothing.
func (in *instance) stop(ctx context.Context, s spec) error {
	ran, err := in.noted(ctx)
	if err != nil {
		return err
	}
	if err := in.end(ctx); err != nil {
		return err
	}
	specs := []spec{s, leftBy(ran)} // it may have run with other arguments than are recorded
	for _, s := range specs {
		// A socket that is somebody else's by now stays.
		if err := in.clear(ctx, s); err != nil && !errors.Is(err, providers.ErrForeign) {
			return err
		}
		if err := in.remove(ctx, path.Join(dpdkDir, s.prefix)); err != nil {
			return err
		}
	}
	if err := in.tidyFolders(ctx, specs); err != nil {
		return err
	}
	return in.Remove(ctx, 0)
}

// leftBy is what of a command line leaves something behind: the file prefix and the sockets. An argument that is not understood is left out.
func leftBy(argv []string) spec {
	var s spec
	for i, a := range argv[:max(0, len(argv)-1)] {
		switch next := argv[i+1]; a {
		case "--file-prefix":
			s.prefix = marked.Tidy(next)
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

// end ends the process, by its console if somebody reads that.
func (in *instance) end(ctx context.Context) error {
	pid, err := in.Find(ctx)
	if err != nil || pid == 0 {
		return err
	}
	text, _, err := in.Log(ctx)
	if err != nil {
		return err
	}
	grace := time.Duration(0)
	if atPrompt(text) && in.say(ctx, "quit") == nil { // it may be ending already
		grace = quitLimit
	}
	return in.End(ctx, grace)
}

// say types a line into the console. A FIFO that nobody reads is an error rather than a wait.
func (in *instance) say(ctx context.Context, line string) error {
	_, err := in.Conn.Run(ctx, providers.Cmd{Args: []string{"dd", "of=" + path.Join(in.Dir, "stdin"), "oflag=nonblock", "conv=nocreat,notrunc", "status=none"}, Stdin: []byte(line + "\n")})
	if err != nil {
		return fmt.Errorf("type %q into testpmd's console: %w", line, err)
	}
	return nil
}

// tidyFolders removes folders of sockets below Plumb's that are empty now.
func (in *instance) tidyFolders(ctx context.Context, specs []spec) error {
	var dirs []string
	for _, s := range specs {
		for _, sock := range s.sockets() {
			if d := path.Dir(sock); strings.HasPrefix(d, marked.RunDir+"/") && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	for _, d := range dirs {
		var exit *providers.ExitError
		if _, err := in.Conn.Run(ctx, providers.Cmd{Args: []string{"rmdir", d}}); err != nil && !errors.As(err, &exit) {
			return err
		}
	}
	return nil
}

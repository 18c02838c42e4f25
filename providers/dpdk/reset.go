package dpdk

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"plumb/providers"
	"plumb/providers/internal/marked"
)

// Resets are "restart", which asks testpmd's console to quit, and "kill", which is SIGKILL.
func (t *Testpmd) Resets() []string { return []string{"restart", "kill"} }

// Reset ends the process and starts it with the same arguments, and returns when its ports run, which for a vhost-user socket of its own needs the
// switch to have connected. Once it has ended it is started also when ctx ends. A process that does not run is only started.
func (t *Testpmd) Reset(ctx context.Context, h providers.Host, mark providers.Mark, of providers.Subject, kind string) error {
	if h == nil {
		return errNoHost
	}
	in, s := newInstance(h, mark), testpmdSpec(of.Value, mark)
	end := func(ctx context.Context) error { return in.stop(ctx, s) }
	switch kind {
	case "restart":
	case "kill":
		end = in.kill
	default:
		return fmt.Errorf("%s knows the resets restart and kill, not %q", of.Addr, kind)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := end(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", kind, of.Addr, err)
	}
	if err := in.start(ctx, s, func(string) {}); err != nil {
		return fmt.Errorf("start %s again: %w", of.Addr, err)
	}
	return nil
}

// kill ends the process at once and leaves behind what it leaves.
func (in *instance) kill(ctx context.Context) error {
	pid, err := in.Find(ctx)
	if err != nil || pid == 0 {
		return err
	}
	var exit *providers.ExitError
	if _, err := in.Conn.Run(ctx, providers.Cmd{Args: []string{"kill", "-KILL", strconv.Itoa(pid)}}); err != nil && !errors.As(err, &exit) {
		return err
	}
	return marked.Poll(ctx, quitLimit, func() (bool, error) {
		pid, err := in.Find(ctx)
		return pid == 0, err
	})
}

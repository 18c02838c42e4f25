package ovs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"plumb/providers"
)

var _ providers.Resetter = switchType{}

// Resets are "restart", in which ovs-vswitchd is asked to end, and "kill", which is SIGKILL.
func (switchType) Resets() []string { return []string{"restart", "kill"} }

// Reset ends ovs-vswitchd and starts it as the switch was applied, and returns when it has taken the database over: DPDK runs and the ports
// are there. Flows are lost (schema.Resource.LostOn). Once it has ended it is started also when ctx ends. A daemon that does not run is only
// started.
func (switchType) Reset(ctx context.Context, host providers.Host, _ providers.Mark, of providers.Subject, kind string) error {
	s, err := sessionOf(ctx, host)
	if err != nil {
		return err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	s.changed()
	before, err := s.look(ctx)
	if err != nil {
		return err
	}
	if !before.server {
		return fmt.Errorf("%s %s: %w on %s", kind, of.Addr, errStopped, host.Name())
	}
	end := func(ctx context.Context) error { return s.stopDaemon(ctx, false) }
	switch kind {
	case "restart":
	case "kill":
		end = func(ctx context.Context) error { return s.killDaemon(ctx, before) }
	default:
		return fmt.Errorf("%s knows the resets restart and kill, not %q", of.Addr, kind)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // every step has a limit of its own
	if err := end(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", kind, of.Addr, err)
	}
	if err := s.startDaemon(ctx); err != nil {
		return fmt.Errorf("start %s again: %w", of.Addr, err)
	}
	after, err := s.look(ctx)
	if err != nil {
		return err
	}
	if before.root.dpdk && !after.root.dpdk {
		return fmt.Errorf("start %s again: DPDK did not start in ovs-vswitchd on %s%s", of.Addr, host.Name(), s.logTail(ctx, 10))
	}
	var missing []string
	for name, p := range before.ports {
		if now := after.ports[name]; p.ofport > 0 && (now == nil || now.ofport <= 0) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("start %s again: ports of %s that worked before do not any more: %s%s", of.Addr, host.Name(), strings.Join(missing, ", "), s.logTail(ctx, 10))
	}
	return nil
}

// killDaemon ends ovs-vswitchd at once and takes away what it could not: the sockets of its own, on which DPDK does not listen anew while they are
// there.
func (s *session) killDaemon(ctx context.Context, w *world) error {
	defer s.changed()
	pid, err := s.process(ctx, daemonPid, "ovs-vswitchd")
	if err != nil || pid == 0 {
		return err
	}
	if err := s.run(ctx, "kill ovs-vswitchd", 0, "kill", "-KILL", fmt.Sprint(pid)); err != nil {
		return err
	}
	if err := s.awaitEnd(ctx, "ovs-vswitchd", pid); err != nil {
		return err
	}
	args := []string{"rm", "-f", "--", controlSocket(pid)}
	for _, p := range w.ports {
		if p.typ == serverType {
			args = append(args, socketPath(serverType, p.name, w))
		}
	}
	return s.run(ctx, "remove sockets of ovs-vswitchd", 0, args...)
}

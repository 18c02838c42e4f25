// Package vhostsock removes vhost-user sockets that a process left when it was killed.
package vhostsock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"plumb/providers"
)

// Listening lists the paths of a host's listening stream sockets: in /proc/net/unix, those with the flag SO_ACCEPTCON, 00010000 (proc_net(5)).
func Listening(ctx context.Context, conn providers.Conn) (map[string]bool, error) {
	const name = "/proc/net/unix"
	files, err := conn.ReadFiles(ctx, name)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(files[name])) {
		if f := strings.Fields(line); len(f) == 8 && f[3] == "00010000" {
			out[f[7]] = true
		}
	}
	return out, nil
}

// RemoveStale removes those of the sockets that nobody listens on. Whatever is no socket stays, and what is not there is no error.
func RemoveStale(ctx context.Context, conn providers.Conn, sockets ...string) error {
	if len(sockets) == 0 {
		return nil
	}
	heard, err := Listening(ctx, conn)
	if err != nil {
		return err
	}
	stale := slices.DeleteFunc(slices.Clone(sockets), func(s string) bool {
		return !strings.HasPrefix(s, "/") || heard[s] || heard[strings.Replace(s, "/var/run/", "/run/", 1)]
	})
	if len(stale) == 0 {
		return nil
	}
	const script = `for s in "$@"; do if [ -S "$s" ]; then rm -f -- "$s"; fi; done`
	if _, err := conn.Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", script, "plumb-sockets"}, stale...)}); err != nil {
		return fmt.Errorf("remove vhost-user sockets that are left: %w", err)
	}
	return nil
}

package boot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/pause"
)

// Limits of a reboot. A server with much memory and many adapters takes minutes before its kernel starts.
const (
	goLimit    = 5 * time.Minute  // until it has gone down
	backLimit  = 20 * time.Minute // until it answers with a new boot id
	unitsLimit = 5 * time.Minute  // until systemd has started its units
	look       = time.Second      // how often it is looked
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// RebootAllowed says whether a host block allows its machine to be rebooted, and if not, why.
func RebootAllowed(config cty.Value) (bool, string) {
	const how = "Set reboot = \"allowed\" in its host block, or make the change when it may be rebooted"
	if config.IsNull() || config.GetAttr("ssh").IsNull() {
		return false, "Plumb runs on it, or on the machine that it is a part of, and would not come back to go on"
	}
	if attr.Text(config, "reboot") != "allowed" {
		return false, "it may not be rebooted. " + how
	}
	return true, ""
}

// Reboot reboots a host and returns when it runs again: it has another boot id, and systemd has started its units. Failed units are told, and no error. It waits for these conditions, with limits. Host.Forget
// has been called when it returns without an error.
func Reboot(ctx context.Context, h providers.Host, log func(string)) error {
	conn := h.Conn()
	if providers.ThisMachine(conn) {
		return fmt.Errorf("reboot %s: Plumb runs on it", h.Name())
	}
	before, err := bootID(ctx, conn)
	if err != nil {
		return fmt.Errorf("reboot %s: %w", h.Name(), err)
	}
	started := time.Now()
	// The answer may be lost with the connection, or the command be ended by a signal of what it asked for: whether it goes down is seen.
	if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"systemctl", "reboot"}}); err != nil {
		var exit *providers.ExitError
		if errors.As(err, &exit) && exit.Exit < 128 && !strings.Contains(string(exit.Stderr), "Transport endpoint") {
			if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"reboot"}}); errors.As(err, &exit) && exit.Exit < 128 {
				return fmt.Errorf("reboot %s: %w", h.Name(), err)
			}
		}
	}
	log("waiting for it to go down")
	gone, err := await(ctx, goLimit, func(ctx context.Context) (bool, error) {
		id, err := bootID(ctx, conn)
		return err != nil || id != before, nil
	})
	if err != nil || !gone {
		return errors.Join(err, fmt.Errorf("reboot %s: it was asked to, and %s later it still runs as before", h.Name(), goLimit))
	}
	log(fmt.Sprintf("it went down after %s; waiting for it to come back", time.Since(started).Round(time.Second)))
	back, err := await(ctx, backLimit, func(ctx context.Context) (bool, error) {
		id, err := bootID(ctx, conn)
		return err == nil && id != before, nil
	})
	if err != nil || !back {
		return errors.Join(err, fmt.Errorf("%s %w: it went down for its reboot and has not come back within %s: look at its console", h.Name(), providers.ErrUnreachable, backLimit))
	}
	log(fmt.Sprintf("it answers again after %s; waiting for its units", time.Since(started).Round(time.Second)))
	if err := h.Forget(); err != nil {
		return fmt.Errorf("reboot %s: %w", h.Name(), err)
	}
	return units(ctx, h, log)
}

// bootID is read with a short limit: a machine that is going down may take the question and not answer.
func bootID(ctx context.Context, conn providers.Conn) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	files, err := conn.ReadFiles(ctx, bootIDFile)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(files[bootIDFile]))
	if id == "" {
		return "", fmt.Errorf("%s is empty", bootIDFile)
	}
	return id, nil
}

// units waits until systemd has started what it starts.
func units(ctx context.Context, h providers.Host, log func(string)) error {
	facts, err := h.Facts(ctx)
	if err != nil {
		return fmt.Errorf("reboot %s: %w", h.Name(), err)
	}
	if !facts.Systemd {
		return nil
	}
	state := ""
	done, err := await(ctx, unitsLimit, func(ctx context.Context) (bool, error) {
		res, err := h.Conn().Run(ctx, providers.Cmd{Args: []string{"systemctl", "is-system-running"}})
		var exit *providers.ExitError
		if err != nil && !errors.As(err, &exit) { // it may cut us off once more
			return false, nil
		}
		state = strings.TrimSpace(string(res.Stdout))
		return state == "running" || state == "degraded", nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("reboot %s: %w", h.Name(), err)
	case !done:
		return fmt.Errorf("reboot %s: %s after it came back systemd says that it is %s", h.Name(), unitsLimit, state)
	case state == "degraded":
		res, err := h.Conn().Run(ctx, providers.Cmd{Args: []string{"systemctl", "--failed", "--no-legend", "--plain"}})
		if err == nil {
			for line := range strings.Lines(string(res.Stdout)) {
				if f := strings.Fields(line); len(f) > 0 {
					log("a unit has failed: " + f[0])
				}
			}
		}
	}
	return nil
}

// await looks again and again until something holds, or the limit has passed.
func await(ctx context.Context, limit time.Duration, holds func(context.Context) (bool, error)) (bool, error) {
	deadline := time.Now().Add(limit)
	for {
		ok, err := holds(ctx)
		if ok || err != nil {
			return ok, err
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		if err := pause.For(ctx, look); err != nil {
			return false, err
		}
	}
}

package ovs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"plumb/providers"
)

// run is one command of this package, with an error that says what it was for.
func (s *session) run(ctx context.Context, what string, limit time.Duration, args ...string) error {
	_, err := s.host.Conn().Run(ctx, providers.Cmd{Args: args, Timeout: limit})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// systemd says whether services are systemd's here.
func (s *session) systemd(ctx context.Context) (bool, error) {
	f, err := s.host.Facts(ctx)
	if err != nil {
		return false, err
	}
	return f.Systemd, nil
}

// dbExists says whether there is a database file. It may be a symbolic link to one that is not there yet (Debian).
func (s *session) dbExists(ctx context.Context) (bool, error) {
	return s.test(ctx, "-s", dbFile)
}

func (s *session) test(ctx context.Context, flag, path string) (bool, error) {
	_, err := s.host.Conn().Run(ctx, providers.Cmd{Args: []string{"test", flag, path}})
	var exit *providers.ExitError
	if errors.As(err, &exit) && exit.Exit == 1 {
		return false, nil
	}
	return err == nil, err
}

// startServer starts ovsdb-server, with a new database where there is none, and makes the one row of Open_vSwitch.
func (s *session) startServer(ctx context.Context) error {
	sd, err := s.systemd(ctx)
	if err != nil {
		return err
	}
	if sd {
		if err := s.run(ctx, "start ovsdb-server", startLimit, "systemctl", "start", "ovsdb-server.service"); err != nil {
			return err
		}
	} else {
		if err := s.run(ctx, "make "+runDir, 0, "mkdir", "-p", runDir, logDir); err != nil {
			return err
		}
		exists, err := s.dbExists(ctx)
		if err != nil {
			return err
		}
		if !exists {
			if err := s.run(ctx, "create the database "+dbFile, 0, "ovsdb-tool", "create", dbFile, dbSchema); err != nil {
				return err
			}
		}
		err = s.run(ctx, "start ovsdb-server", startLimit, "/usr/sbin/ovsdb-server", dbFile, "--remote=punix:"+dbSocket,
			"--pidfile="+serverPid, "--detach", "--no-chdir", "--log-file="+logDir+"/ovsdb-server.log")
		if err != nil {
			return err
		}
	}
	s.reconnect()
	rows, err := s.transact(ctx, op{"op": "select", "table": "Open_vSwitch", "where": []any{}, "columns": []string{"_uuid"}})
	if err != nil {
		return fmt.Errorf("ovsdb-server was started: %w", err)
	}
	if len(rows[0]) == 0 {
		_, err = s.transact(ctx, op{"op": "insert", "table": "Open_vSwitch", "row": map[string]any{}})
		s.changed()
	}
	return err
}

// startDaemon starts ovs-vswitchd and waits until it has taken the database over. When EAL ends it, the error has EAL's last lines.
func (s *session) startDaemon(ctx context.Context) error {
	sd, err := s.systemd(ctx)
	if err != nil {
		return err
	}
	defer s.changed()
	if sd {
		err = s.run(ctx, "start ovs-vswitchd", startLimit, "systemctl", "start", "openvswitch-switch.service", "ovs-vswitchd.service")
	} else {
		err = s.run(ctx, "start ovs-vswitchd", startLimit, daemon, "unix:"+dbSocket, "--pidfile="+daemonPid, "--detach", "--no-chdir",
			"--log-file="+daemonLog)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, s.logTail(context.WithoutCancel(ctx), 10))
	}
	s.changed()
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	if !w.daemon {
		return fmt.Errorf("ovs-vswitchd on %s ended right after its start%s", s.host.Name(), s.logTail(ctx, 10))
	}
	if err := s.commit(ctx); err != nil { // it has read all there is once it has applied this
		return err
	}
	if w.root.external[keyRestart] != "" {
		return s.restartDone(ctx)
	}
	return nil
}

// stopDaemon stops ovs-vswitchd and waits until it is gone. clean also takes its datapaths away.
func (s *session) stopDaemon(ctx context.Context, clean bool) error {
	defer s.changed()
	if clean { // before systemd is asked, which would leave kernel datapaths and tap devices
		if err := s.exit(ctx, daemonPid, "ovs-vswitchd", true); err != nil {
			return err
		}
	}
	sd, err := s.systemd(ctx)
	if err != nil {
		return err
	}
	if sd {
		return s.run(ctx, "stop ovs-vswitchd", startLimit, "systemctl", "stop", "ovs-vswitchd.service")
	}
	return s.exit(ctx, daemonPid, "ovs-vswitchd", false)
}

func (s *session) stopServer(ctx context.Context) error {
	sd, err := s.systemd(ctx)
	if err != nil {
		return err
	}
	s.reconnect()
	if sd {
		return s.run(ctx, "stop Open vSwitch", startLimit, "systemctl", "stop", "openvswitch-switch.service", "ovs-vswitchd.service", "ovsdb-server.service")
	}
	return s.exit(ctx, serverPid, "ovsdb-server", false)
}

// exit asks a daemon by its control socket to end and waits for its process. One that does not run is fine.
func (s *session) exit(ctx context.Context, pidFile, name string, clean bool) error {
	pid, err := s.process(ctx, pidFile, name)
	if err != nil || pid == 0 {
		return err
	}
	args := []string{"exit"}
	if clean {
		args = append(args, "--cleanup")
	}
	target := fmt.Sprintf("%s/%s.%d.ctl", runDir, name, pid)
	if _, err := s.control(ctx, target, args...); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return s.awaitEnd(ctx, name, pid)
}

// process is the pid of a daemon that runs; 0 when none does, also when a pid file was left behind.
func (s *session) process(ctx context.Context, pidFile, name string) (int, error) {
	pid, err := s.pid(ctx, pidFile)
	if err != nil || pid == 0 {
		return 0, err
	}
	comm := fmt.Sprintf("/proc/%d/comm", pid)
	files, err := s.host.Conn().ReadFiles(ctx, comm)
	if err != nil || !strings.HasPrefix(strings.TrimSpace(string(files[comm])), name) {
		return 0, err
	}
	return pid, nil
}

func (s *session) awaitEnd(ctx context.Context, name string, pid int) error {
	return s.run(ctx, fmt.Sprintf("wait for the end of %s (pid %d)", name, pid), 0, "tail", fmt.Sprintf("--pid=%d", pid), "-f", "/dev/null")
}

package ovs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"plumb/providers"
	"plumb/providers/internal/ovsdb"
	"plumb/providers/internal/unixctl"
)

const (
	applyLimit = 60 * time.Second // for ovs-vswitchd to take a change over; a DPDK port can take tens of seconds
	startLimit = 120 * time.Second
	pollStep   = time.Second // the longest that one wait of the database lasts before the daemon's life is looked at
)

// errStopped says that Open vSwitch does not run.
var errStopped = errors.New("the Open vSwitch daemons do not run")

// database is what a session needs of an OVSDB connection: one transaction, all or nothing.
type database interface {
	transact(ctx context.Context, ops []op) ([][]row, error)
	Close() error
}

type sessionKey struct{}

// session is what all resources of one host share during a run. writes is held by whoever changes something; mu guards the rest.
type session struct {
	host   providers.Host
	writes sync.Mutex

	mu    sync.Mutex
	db    database
	world *world
	dumps map[string]string // dump-flows by bridge
	build *build

	summaries map[[sha256.Size]byte]digested // of flows, by what they are made of
}

func sessionOf(ctx context.Context, h providers.Host) (*session, error) {
	if h == nil {
		return nil, errors.New("ovs resources live on a host, and none is given")
	}
	v, err := h.Shared(ctx, sessionKey{}, func(context.Context) (any, error) {
		return &session{host: h, dumps: map[string]string{}, summaries: map[[sha256.Size]byte]digested{}}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*session), nil
}

// Close closes the database connection; the host calls it.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop()
}

func (s *session) drop() error {
	s.world, s.dumps = nil, map[string]string{}
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	return err
}

// changed forgets the snapshot: something of ours has just changed the world.
func (s *session) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world, s.dumps = nil, map[string]string{}
}

// reconnect is changed, and forgets the connection too: the server was started or stopped.
func (s *session) reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.drop()
}

// look returns the snapshot of the world. Daemons that do not run are no error: the snapshot says so and is otherwise empty.
func (s *session) look(ctx context.Context) (*world, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.world != nil {
		return s.world, nil
	}
	// Side by side: each of the two is some round trips one after another.
	var version string
	var versionErr error
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		version, versionErr = s.daemonVersion(ctx)
	}()
	res, err := s.transactLocked(ctx, worldSelects())
	<-asked
	if errors.Is(err, errStopped) {
		s.world = &world{bridges: map[string]*bridge{}, ports: map[string]*port{}}
		return s.world, nil
	}
	if err := cmp.Or(err, versionErr); err != nil {
		return nil, err
	}
	w := newWorld(res)
	w.daemon, w.root.ovsVersion = version != "", version
	s.world = w
	return w, nil
}

// transact runs one transaction. It does not forget the snapshot.
func (s *session) transact(ctx context.Context, ops ...op) ([][]row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transactLocked(ctx, ops)
}

func (s *session) transactLocked(ctx context.Context, ops []op) ([][]row, error) {
	if s.db == nil {
		db, err := openDatabase(ctx, s.host)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				return nil, fmt.Errorf("open %s on %s: %w: run as root there, or as a user that sudo lets be root", dbSocket, s.host.Name(), err)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%w on %s: %w", errStopped, s.host.Name(), err)
		}
		s.db = db
	}
	res, err := s.db.transact(ctx, ops)
	s.host.Count(providers.Reads{OVSDB: 1})
	if err != nil {
		var refused *ovsdb.OpError
		if !errors.As(err, &refused) { // the connection may be out of step
			_ = s.drop()
		}
		return nil, err
	}
	return res, nil
}

// pid reads a pid file; 0 when there is none.
func (s *session) pid(ctx context.Context, file string) (int, error) {
	got, err := s.host.Conn().ReadFiles(ctx, file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(got[file])))
	if err != nil {
		return 0, nil // no file, or one that was just being written
	}
	return n, nil
}

// daemonAlive says whether ovs-vswitchd listens on its control socket. It does not wait for an answer: the daemon may be busy.
func (s *session) daemonAlive(ctx context.Context) (bool, error) {
	pid, err := s.pid(ctx, daemonPid)
	if err != nil || pid == 0 {
		return false, err
	}
	c, err := s.host.Conn().Dial(ctx, "unix", controlSocket(pid))
	if err != nil {
		return false, ctx.Err()
	}
	return true, c.Close()
}

// daemonVersion asks ovs-vswitchd for its version; the database has it only where ovs-ctl wrote it, maybe of an older build. "" with
// no error: it does not run.
func (s *session) daemonVersion(ctx context.Context) (string, error) {
	pid, err := s.pid(ctx, daemonPid)
	if err != nil || pid == 0 {
		return "", err
	}
	out, err := s.control(ctx, controlSocket(pid), "version")
	var refused *unixctl.Error
	switch {
	case err == nil || errors.As(err, &refused):
		ovs, _ := parseVersion(out)
		return cmp.Or(ovs, "unknown"), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	return "", nil
}

func controlSocket(pid int) string {
	return fmt.Sprintf("%s/ovs-vswitchd.%d.ctl", runDir, pid)
}

// commit runs a transaction that changes configuration and waits until ovs-vswitchd has taken it over. The caller holds writes.
func (s *session) commit(ctx context.Context, ops ...op) error {
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	if !w.server {
		return fmt.Errorf("%w on %s", errStopped, s.host.Name())
	}
	bump := len(ops)
	ops = append(ops,
		op{"op": "mutate", "table": "Open_vSwitch", "where": []any{}, "mutations": []any{[]any{"next_cfg", "+=", 1}}},
		op{"op": "select", "table": "Open_vSwitch", "where": []any{}, "columns": []string{"next_cfg", "cur_cfg"}})
	res, err := s.transact(ctx, ops...)
	s.changed()
	if err != nil {
		return err
	}
	next, _ := res[bump+1][0].num("next_cfg")
	cur, _ := res[bump+1][0].num("cur_cfg")
	if !w.daemon {
		return nil // it reads all of it when it starts
	}
	return s.applied(ctx, next, cur)
}

// applied waits until cur_cfg has reached next.
func (s *session) applied(ctx context.Context, next, cur int64) error {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	for cur < next {
		rows, err := s.transact(ctx,
			op{"op": "wait", "table": "Open_vSwitch", "where": []any{}, "columns": []string{"cur_cfg"}, "until": "!=",
				"rows": []any{map[string]any{"cur_cfg": cur}}, "timeout": int(pollStep / time.Millisecond)},
			op{"op": "select", "table": "Open_vSwitch", "where": []any{}, "columns": []string{"cur_cfg"}})
		switch {
		case err == nil:
			cur, _ = rows[1][0].num("cur_cfg")
		case timedOut(err):
			alive, aliveErr := s.daemonAlive(ctx)
			if aliveErr == nil && !alive {
				return fmt.Errorf("ovs-vswitchd on %s ended while it took the change over%s", s.host.Name(), s.logTail(context.WithoutCancel(ctx), 8))
			}
		case ctx.Err() != nil:
			return fmt.Errorf("ovs-vswitchd on %s did not take the change over within %s: %w%s", s.host.Name(), applyLimit, ctx.Err(), s.logTail(context.WithoutCancel(ctx), 8))
		default:
			return err
		}
	}
	s.changed()
	return nil
}

// logTail is the last lines of ovs-vswitchd's log that are worth reading in an error, or nothing.
func (s *session) logTail(ctx context.Context, lines int) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	res, err := s.host.Conn().Run(ctx, providers.Cmd{Args: []string{"tail", "-n", "400", daemonLog}})
	if err != nil {
		return ""
	}
	picked := pickLog(string(res.Stdout), lines)
	if len(picked) == 0 {
		return ""
	}
	return "\n" + daemonLog + " ends:\n  " + strings.Join(picked, "\n  ")
}

// pickLog takes the last lines since the daemon's last start that DPDK or a warning and worse wrote, without the noise that every
// start and every crash makes.
func pickLog(log string, n int) []string {
	all := strings.Split(strings.TrimSpace(log), "\n")
	for i := len(all) - 1; i >= 0; i-- {
		if strings.Contains(all[i], "|opened log file ") {
			all = all[i:]
			break
		}
	}
	var out []string
	for _, l := range all {
		parts := strings.SplitN(l, "|", 5)
		if len(parts) < 5 {
			continue
		}
		module, level := parts[2], parts[3]
		if module == "timeval" || module == "coverage" || module == "poll_loop" {
			continue
		}
		if strings.HasPrefix(module, "dpdk") || strings.HasPrefix(module, "netdev_dpdk") || level == "WARN" || level == "ERR" || level == "EMER" {
			out = append(out, l)
		}
	}
	if len(out) > n {
		out = out[len(out)-n:]
	}
	return out
}

package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"plumb/providers"
)

// lookScript prints what ip knows of the namespace that the connection leads to and of all that have a name, with numbers (-N) for what files of the host may call otherwise. A name that is no namespace prints nothing.
const lookScript = `export LC_ALL=C
q='address show
route show table all
neighbour show nud permanent'
echo "=== space"
printf '%s\n' "$q" | ip -N -j -d -batch - || exit
for f in /run/netns/*; do
	n=${f##*/}
	case $n in *[!A-Za-z0-9_.-]*|-*) continue ;; esac
	[ -e "$f" ] || continue
	echo "=== space $n"
	printf '%s\n' "$q" | ip -N -j -d -n "$n" -batch - 2>/dev/null
done
echo "=== devices"
for d in /sys/class/net/*/device; do
	[ -e "$d" ] || continue
	n=${d%/device}
	echo "${n##*/} $(readlink -f -- "$d")"
done
echo "=== end"
`

// session is what the instances of one host and run share.
type session struct {
	host providers.Host

	mu    sync.Mutex
	known *world

	ask     sync.Mutex // held by who asks ethtool: the others' questions are gathered meanwhile
	asked   sync.Mutex // guards what follows
	pending map[end]bool
	drivers map[end]*driver
}

// end is a link of a namespace.
type end struct{ space, name string }

type sessionKey struct{}

func sessionOf(ctx context.Context, h providers.Host) (*session, error) {
	if h == nil {
		return nil, errors.New("links are on a host, and none is given")
	}
	v, err := h.Shared(ctx, sessionKey{}, func(context.Context) (any, error) {
		return &session{host: h, pending: map[end]bool{}, drivers: map[end]*driver{}}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*session), nil
}

// drop forgets what was read, because something was changed.
func (s *session) drop() {
	s.mu.Lock()
	s.known = nil
	s.mu.Unlock()
	s.asked.Lock()
	s.drivers = map[end]*driver{}
	s.asked.Unlock()
}

// look reads everything, in one round trip; callers wait for one reading.
func (s *session) look(ctx context.Context) (*world, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil {
		return s.known, nil
	}
	res, err := s.host.Conn().Run(ctx, providers.Cmd{Args: []string{"sh", "-c", lookScript, "plumb-net-look"}})
	var exit *providers.ExitError
	if errors.As(err, &exit) && exit.Exit == 127 {
		return nil, fmt.Errorf("look at the links of %s: there is no ip(8): install iproute2: %w", s.host.Name(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("look at the links of %s: %w", s.host.Name(), err)
	}
	w, err := parseLook(res.Stdout)
	if err != nil {
		return nil, fmt.Errorf("look at the links of %s: %w", s.host.Name(), err)
	}
	s.known = w
	return w, nil
}

// fresh is look after what somebody else may have changed.
func (s *session) fresh(ctx context.Context) (*world, error) {
	s.drop()
	return s.look(ctx)
}

// space finds a namespace for a change.
func (w *world) space(name, host string) (*space, error) {
	if s := w.spaces[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no network namespace %s on %s: make it with a net_namespace, and refer to that one's name", name, host)
}

// link is nil where there is none, also for a namespace that is not there.
func (w *world) link(e end) *link {
	if s := w.spaces[e.space]; s != nil {
		return s.links[e.name]
	}
	return nil
}

// names are the named namespaces, for people.
func (w *world) names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.spaces)), func(n string) bool { return n == "" })
}

// at is a link in words: "link v0", "link v0 in namespace a".
func (e end) String() string {
	if e.space == "" {
		return e.name
	}
	return e.name + " in namespace " + e.space
}

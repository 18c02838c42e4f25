package network

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// changeScript does steps of three arguments each: a tool, the namespace it works in ("" for the connection's own) and its text, which for ethtool is split at blanks: all its words are checked. It ends
// with the first step that fails, and says which.
const changeScript = `export LC_ALL=C
set -f
n=0
while [ $# -ge 3 ]; do
	n=$((n + 1)) ns=$2 text=$3
	case $1 in
	ip) printf '%s\n' "$text" | if [ -n "$ns" ]; then ip -n "$ns" -batch -; else ip -batch -; fi ;;
	ethtool) if [ -n "$ns" ]; then ip netns exec "$ns" ethtool $text; else ethtool $text; fi ;;
	netns-add) { [ -e "/run/netns/$ns" ] || ip netns add "$ns"; } && ip -n "$ns" link set dev lo alias "$text" ;;
	netns-del) [ ! -e "/run/netns/$ns" ] || ip netns del "$ns" ;;
	*) echo "no such tool: $1" >&2; false ;;
	esac
	s=$?
	if [ $s -ne 0 ]; then echo "=== step $n" >&2; exit $s; fi
	shift 3
done
`

// steps is a change while it is put together.
type steps struct {
	args []string
	errs []error
}

// words is one line of a batch of ip, or the arguments of ethtool.
type words []string

// ip adds lines for `ip -batch -` in a namespace.
func (s *steps) ip(space string, lines ...words) {
	var text []string
	for _, l := range lines {
		text = append(text, s.join("ip", l))
	}
	if len(text) == 0 {
		return
	}
	s.within(space)
	if n := len(s.args); n >= 3 && s.args[n-3] == "ip" && s.args[n-2] == space {
		s.args[n-1] += "\n" + strings.Join(text, "\n")
		return
	}
	s.args = append(s.args, "ip", space, strings.Join(text, "\n"))
}

// ethtool adds a call of ethtool.
func (s *steps) ethtool(space string, w words) {
	s.within(space)
	s.args = append(s.args, "ethtool", space, s.join("ethtool", w))
}

// namespace makes ("netns-add", with its mark) or removes ("netns-del") one.
func (s *steps) namespace(tool, space, mark string) {
	if s.within(space); space == "" {
		s.errs = append(s.errs, errors.New("a namespace has a name"))
	}
	s.args = append(s.args, tool, space, mark)
}

// within checks the name of a namespace: it is an argument of ip.
func (s *steps) within(space string) {
	if space == "" {
		return
	}
	if err := spaceName(cty.StringVal(space)); err != nil {
		s.errs = append(s.errs, err)
	}
}

// join makes a line of words of which each is one word to ip and to the shell, whatever it came from.
func (s *steps) join(tool string, w words) string {
	for _, x := range w {
		if x == "" || strings.Trim(x, alphanumeric+"_.:/%[],@+=-") != "" {
			s.errs = append(s.errs, fmt.Errorf("%q cannot be said to %s", x, tool))
		}
	}
	return strings.Join(w, " ")
}

// refusal is what a tool said of one line.
type refusal struct {
	line, host, why string
	err             error
}

func (r *refusal) Error() string { return fmt.Sprintf("%s refuses %q: %s", r.host, r.line, r.why) }
func (r *refusal) Unwrap() error { return r.err }

// do makes the change, in one round trip. What was read before is forgotten. Once begun it goes on to its end, or to the first step that fails, whatever becomes of ctx.
func (s *session) do(ctx context.Context, c *steps) error {
	if err := errors.Join(append(c.errs, ctx.Err())...); err != nil || len(c.args) == 0 {
		return err
	}
	defer s.drop()
	_, err := s.host.Conn().Run(context.WithoutCancel(ctx), providers.Cmd{Args: append([]string{"sh", "-c", changeScript, "plumb-net-change"}, c.args...)})
	var exit *providers.ExitError
	if errors.As(err, &exit) {
		return refused(c.args, string(exit.Stderr), s.host.Name(), err)
	}
	return err
}

// refused finds the line that failed, and what the tool said of it.
func refused(args []string, stderr, host string, err error) error {
	step, line := 0, 0
	var why []string
	for l := range strings.Lines(stderr) {
		l = strings.TrimSpace(l)
		switch {
		case l == "":
		case scan(l, "=== step %d", &step), scan(l, "Command failed -:%d", &line):
		default:
			why = append(why, strings.TrimPrefix(l, "Error: "))
		}
	}
	if step < 1 || step*3 > len(args) {
		return err
	}
	tool, space, text := args[step*3-3], args[step*3-2], args[step*3-1]
	if all := strings.Split(text, "\n"); line >= 1 && line <= len(all) {
		text = all[line-1]
	}
	if strings.HasPrefix(tool, "netns") {
		tool, space, text = "ip netns "+strings.TrimPrefix(tool, "netns-"), "", space
	}
	r := &refusal{line: tool + " " + text, host: host, why: strings.Join(why, "; "), err: err}
	if space != "" {
		r.host += " (namespace " + space + ")"
	}
	return r
}

func scan(s, format string, n *int) bool {
	var v int
	if k, err := fmt.Sscanf(s, format, &v); k != 1 || err != nil {
		return false
	}
	*n = v
	return true
}

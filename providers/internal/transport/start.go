package transport

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"plumb/providers"
)

// launcher makes the folder, refuses one that holds a live process, and detaches the supervisor in a session of its own. Its
// parameters are argv: $1 the folder, $2 the supervisor's text, then the environment as KEY=VALUE up to "--", then the command.
const launcher = `set -eu
dir=$1 supervisor=$2
shift 2
mkdir -p -- "$dir"
if [ -s "$dir/pid" ] && [ ! -e "$dir/exit" ] && kill -0 "$(cat "$dir/pid")" 2>/dev/null; then
	echo "$dir holds a live process, pid $(cat "$dir/pid")" >&2
	exit 75
fi
rm -f -- "$dir/pid" "$dir/exit" "$dir/stdin" "$dir/log"
mkfifo -m 600 -- "$dir/stdin"
: >"$dir/log"
setsid -f sh -c "$supervisor" supervisor "$dir" "$@" </dev/null >/dev/null 2>&1
`

// supervisor runs the command as its child. The child writes its own pid before it becomes the command, so that the pid is known
// whenever the command runs, whatever happens to Plumb. Standard input is the FIFO opened for reading and writing: it never reports
// end of file.
const supervisor = `dir=$1
shift
cd "$dir" || exit 1
(
	while [ "$1" != -- ]; do export "$1"; shift; done
	shift
	sh -c 'echo $$ >pid.new && mv pid.new pid && exec "$@"' child "$@" <>stdin >>log 2>&1
	echo $? >exit.new && mv exit.new exit
) &
wait
`

// Start starts a supervised process; see providers.Process.
func (l Local) Start(ctx context.Context, p providers.Process) error {
	if len(p.Args) == 0 || !filepath.IsAbs(p.Dir) {
		return errors.New("start: a command and an absolute folder are needed")
	}
	args := []string{"sh", "-c", launcher, "launcher", p.Dir, supervisor}
	for _, e := range p.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" || name == "--" || strings.ContainsAny(name, " \t\n'\"$`\\-") {
			return fmt.Errorf("start: %q is not an environment setting", name)
		}
		args = append(args, e)
	}
	args = append(append(args, "--"), p.Args...)
	if _, err := l.Run(ctx, providers.Cmd{Args: args}); err != nil {
		return fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	return awaitPID(ctx, l, p.Dir)
}

// awaitPID waits until the process runs or has ended already.
func awaitPID(ctx context.Context, c providers.Conn, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	pid, exit := filepath.Join(dir, "pid"), filepath.Join(dir, "exit")
	for {
		files, err := c.ReadFiles(ctx, pid, exit)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("start: no pid in %s: %w", dir, ctx.Err())
		case <-tick.C:
		}
	}
}

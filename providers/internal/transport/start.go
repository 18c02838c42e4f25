package transport

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"plumb/providers"
)

// The scripts below start a supervised process (see providers.Process). They are constants: whatever differs from one process to the next
// comes as an argument or in the environment. Three shells run, one after another:
//
//	start      prepares the folder, detaches the supervisor, and ends when the process has its pid on disk
//	supervise  a session of its own; waits for the process and writes its exit status
//	become     writes its own pid, tells start, and becomes the process by exec: pid is on disk before the process runs
//
// The variables of the process travel as PLUMB_ENV_0, ... so that nobody who looks for a mark in /proc/*/environ takes the supervisor
// for the process. The process must not be an asynchronous command of the shell: those ignore SIGINT.

const scriptIdentity = `
identity() { # of a process: no other one has it, not after a reboot either
	cat /proc/sys/kernel/random/boot_id && sed 's/^.*) //' "/proc/$1/stat" | cut -d ' ' -f 20
}
`

const scriptStart = scriptIdentity + `
set -eu
supervise=$1 become=$2 dir=$3 n=$4
shift 4
mkdir -p -- "$dir"
if [ -e "$dir/pid" ] && [ ! -e "$dir/exit" ]; then
	pid=$(cat "$dir/pid")
	if [ -e "/proc/$pid/stat" ] && [ "$(identity "$pid")" = "$(cat "$dir/identity")" ]; then
		echo "$dir holds a live process, $pid" >&2
		exit 75
	fi
fi
rm -f -- "$dir/pid" "$dir/identity" "$dir/exit" "$dir/stdin"
if [ -e "$dir/log" ]; then mv -f -- "$dir/log" "$dir/log.1"; fi
mkfifo -m 600 -- "$dir/stdin"
: >"$dir/log"
setsid -f sh -c "$supervise" plumb-supervise "$become" "$dir" "$n" "$@" 2>>"$dir/log" | {
	if read -r pid; then exit 0; fi
	tail -n 1 "$dir/log" >&2
	exit 1
}
`

const scriptSupervise = `
become=$1 dir=$2 n=$3
shift 3
cd / && exec </dev/null
sh -c "$become" plumb-become "$dir" "$n" "$@" 3>&1 0<>"$dir/stdin" >>"$dir/log" 2>&1
status=$?
echo "$status" >"$dir/exit.new" && mv -f -- "$dir/exit.new" "$dir/exit"
`

const scriptBecome = scriptIdentity + `
set -eu
dir=$1 n=$2
shift 2
i=0
while [ "$i" -lt "$n" ]; do
	eval "pair=\$PLUMB_ENV_$i"
	export "$pair"
	unset "PLUMB_ENV_$i" pair
	i=$((i + 1))
done
identity $$ >"$dir/identity"
echo $$ >"$dir/pid.new"
mv -f -- "$dir/pid.new" "$dir/pid"
echo $$ >&3
exec 3>&-
exec "$@"
`

// startCommand is the command that starts p on any host with a POSIX shell and util-linux.
func startCommand(p providers.Process) (providers.Cmd, error) {
	if !path.IsAbs(p.Dir) {
		return providers.Cmd{}, fmt.Errorf("start a process in %q: the folder must be an absolute path", p.Dir)
	}
	if len(p.Args) == 0 {
		return providers.Cmd{}, fmt.Errorf("start a process in %s: no command", p.Dir)
	}
	cmd := providers.Cmd{Args: append([]string{"sh", "-c", scriptStart, "plumb-start", scriptSupervise, scriptBecome, path.Clean(p.Dir),
		strconv.Itoa(len(p.Env))}, p.Args...)}
	for i, e := range p.Env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || !identifier(name) {
			return providers.Cmd{}, fmt.Errorf("start a process in %s: %q is not a name of a variable", p.Dir, name)
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("PLUMB_ENV_%d=%s", i, e))
	}
	return cmd, nil
}

func identifier(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (s[0] < '0' || s[0] > '9')
}

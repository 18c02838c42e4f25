package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"plumb/providers"
)

// files reads and writes files of a host by commands. The scripts are constants: names and patterns are arguments, data goes through standard input. A wildcard "?" or class stands for a
// byte here, which matters for names that are not ASCII.
type files struct {
	name  string
	run   func(context.Context, providers.Cmd) (providers.Result, error)
	retry bool // read once more when the connection was cut

	mu      sync.Mutex
	reading bool
	waiting []*reading
}

// reading is one call of ReadFiles.
type reading struct {
	patterns []string
	done     chan struct{}
	found    map[string][]byte
	errs     map[string]error // by file
	err      error
}

// readScript prints, for each word, the files that it stands for: P and a path, or G and a pattern. It takes the separator as its first line of input, lest that shows in the
// command line of a process that is read. The answer is the length of a list of NUL-terminated words, file and separator file in turns; the list; and each file's content followed by the
// separator. One cat reads all of them: a process for each would take a millisecond each. The folder for separator and list is gone before anything is read.
const readScript = `IFS= read -r sep || exit 1
t=$(mktemp -d /dev/shm/plumb-XXXXXX 2>/dev/null || mktemp -d) || exit 1
printf %s "$sep" >"$t/sep"
IFS=
set +f
for a in "$@"; do
	p=${a#?}
	case $a in
	G*) for f in $p; do if [ -e "$f" ] && ! [ -d "$f" ]; then printf '%s\0/proc/self/fd/3\0' "$f"; fi; done ;;
	P*) printf '%s\0/proc/self/fd/3\0' "$p" ;;
	esac
done >"$t/list"
exec 3<"$t/sep" 4<"$t/list"
wc -c <"$t/list"
cat "$t/list"
[ -s "$t/list" ] && more=1 || more=
rm -rf "$t"
[ -z "$more" ] || xargs -0 cat -- <&4 || :
`

// read is ReadFiles. Calls that come while one is under way wait for it and go together in the next.
func (f *files) read(ctx context.Context, patterns []string) (map[string][]byte, error) {
	for _, p := range patterns {
		if !path.IsAbs(p) {
			return nil, fmt.Errorf("read %q: not an absolute path", p)
		}
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("read %q: %w", p, err)
		}
		if strings.ContainsRune(p, 0) {
			return nil, fmt.Errorf("read %q: a NUL byte is in no path", p)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(patterns) == 0 {
		return map[string][]byte{}, nil
	}
	r := &reading{patterns: patterns, done: make(chan struct{})}
	f.mu.Lock()
	f.waiting = append(f.waiting, r)
	if !f.reading {
		f.reading = true
		go f.serve(context.WithoutCancel(ctx))
	}
	f.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.errs)) {
		errs = append(errs, fmt.Errorf("on %s: %w", f.name, r.errs[name]))
	}
	return r.found, errors.Join(errs...)
}

// serve makes round trips until nobody waits.
func (f *files) serve(ctx context.Context) {
	for {
		f.mu.Lock()
		batch := f.waiting
		f.waiting = nil
		if len(batch) == 0 {
			f.reading = false
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		var all []string
		for _, r := range batch {
			for _, p := range r.patterns {
				if !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
		found, errs, err := f.fetch(ctx, all)
		if err != nil && f.retry && errors.Is(err, errCut) {
			found, errs, err = f.fetch(ctx, all)
		}
		for _, r := range batch {
			r.found, r.errs, r.err = map[string][]byte{}, map[string]error{}, err
			for name, data := range found {
				if r.wants(name) {
					r.found[name] = data
				}
			}
			for name, e := range errs {
				if r.wants(name) {
					r.errs[name] = e
				}
			}
			close(r.done)
		}
	}
}

// wordsAtMost is how many bytes of names one command gets: Linux takes 128 KiB in one argument, and quotes need room.
const wordsAtMost = 24 << 10

// fetch is one round trip, or a few when there are thousands of names.
func (f *files) fetch(ctx context.Context, patterns []string) (map[string][]byte, map[string]error, error) {
	found, errs := map[string][]byte{}, map[string]error{}
	var some []string
	size := 0
	for i, p := range patterns {
		for _, w := range words(p) {
			some = append(some, w)
			size += len(w) + 3
		}
		if size < wordsAtMost && i < len(patterns)-1 {
			continue
		}
		data, problems, err := f.fetchSome(ctx, some)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(found, data)
		maps.Copy(errs, problems)
		some, size = nil, 0
	}
	return found, errs, nil
}

func (f *files) fetchSome(ctx context.Context, words []string) (map[string][]byte, map[string]error, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, nil, err
	}
	sep := "plumb-" + hex.EncodeToString(random[:]) + "\n"
	args := append([]string{"sh", "-c", readScript, "plumb-read"}, words...)
	res, err := f.run(ctx, providers.Cmd{Args: args, Stdin: []byte(sep)})
	if err != nil {
		return nil, nil, fmt.Errorf("read files: %w", err)
	}
	return parseRead(res, strings.TrimSuffix(sep, "\n"))
}

// writeScript replaces a file as Local does. It takes the number of bytes, so that half of them are never taken for all when the connection is cut.
const writeScript = `set -eu
name=$1 mode=$2 size=$3
if [ -L "$name" ] && [ -e "$name" ]; then
	real=$(readlink -f -- "$name"; echo x)
	name=${real%?x}
fi
case $name in
/proc/* | /sys/*)
	data=$(cat; echo x)
	data=${data%x}
	[ "${#data}" -eq "$size" ] || exit 74
	printf %s "$data" | dd of="$name" bs=1048576 iflag=fullblock conv=notrunc status=none
	exit
	;;
esac
dir=${name%/*}
[ -d "${dir:-/}" ] || exit 72
tmp=$(mktemp "$dir/.plumb-XXXXXX")
trap 'rm -f -- "$tmp"' EXIT
cat >"$tmp"
[ "$(wc -c <"$tmp")" -eq "$size" ] || exit 74
chmod -- "$mode" "$tmp"
sync -- "$tmp" 2>/dev/null || sync
mv -f -- "$tmp" "$name"
sync -- "${dir:-/}" 2>/dev/null || sync
`

// write is WriteFile.
func (f *files) write(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	if !filepath.IsAbs(name) {
		return fmt.Errorf("write %q: not an absolute path", name)
	}
	name = filepath.Clean(name)
	if kernel(name) && bytes.IndexByte(data, 0) >= 0 {
		return fmt.Errorf("on %s: write %s: a NUL byte", f.name, name)
	}
	_, err := f.run(ctx, providers.Cmd{Args: []string{"sh", "-c", writeScript, "plumb-write", name, fmt.Sprintf("%04o", unixMode(mode)), strconv.Itoa(len(data))}, Stdin: data})
	var exit *providers.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	cause := error(exit)
	text := strings.TrimSpace(string(exit.Stderr))
	switch e := errnoOf(text); {
	case exit.Exit == 72:
		cause = fs.ErrNotExist
	case exit.Exit == 74:
		cause = errors.New("the data came cut off; nothing was written")
	case e != 0:
		cause = e
	}
	return fmt.Errorf("on %s: %w", f.name, &fs.PathError{Op: "write", Path: name, Err: cause})
}

// unixMode is a mode as chmod(1) takes it.
func unixMode(m fs.FileMode) uint32 {
	out := uint32(m.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&flag != 0 {
			out |= bit
		}
	}
	return out
}

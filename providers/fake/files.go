package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// clean makes one spelling of a path: /var/run is /run.
func clean(name string) string {
	name = path.Clean("/" + name)
	if rest, ok := strings.CutPrefix(name, "/var/run/"); ok {
		return "/run/" + rest
	}
	return name
}

// real is the file that stands for a path of the host, symbolic links followed within the host, the last one too if follow.
func (c *Conn) real(name string, follow bool) string {
	return c.Root() + c.resolve(name, follow)
}

// resolve follows symbolic links as the host would: an absolute one starts at its root. Parts that do not exist are kept (readlink -m).
func (c *Conn) resolve(name string, follow bool) string {
	done, rest := "/", strings.Split(path.Clean("/" + name)[1:], "/")
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		next := path.Join(done, part)
		if len(rest) > 0 || follow {
			if to, err := os.Readlink(c.Root() + next); err == nil && hops < 40 {
				hops++
				if path.IsAbs(to) {
					done = "/"
				}
				rest = append(strings.Split(strings.Trim(to, "/"), "/"), rest...)
				continue
			}
		}
		done = next
	}
	return done
}

// ReadFiles reads files of the host.
func (c *Conn) ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error) {
	if err := c.begin(ctx, "ReadFiles", strings.Join(patterns, " ")); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	var errs []error
	err := c.locked(func(h *host) error {
		for _, p := range patterns {
			names, glob, err := h.expand(p)
			if err != nil {
				return err
			}
			for _, name := range names {
				b, err := os.ReadFile(h.real(name, true))
				switch {
				case name == "/proc/self/status":
					out[name] = []byte(h.selfStatus())
				case name == "/proc/self/mountinfo":
					out[name] = []byte(h.mountinfo())
				case name == "/proc/net/unix":
					out[name] = []byte(h.unixSockets())
				case err == nil:
					out[name] = b
				case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), glob && errors.Is(err, syscall.EISDIR):
				default:
					errs = append(errs, fmt.Errorf("on the fake host: %s: %w", name, err))
				}
			}
		}
		return nil
	})
	return out, errors.Join(append(errs, err)...)
}

// selfStatus is /proc/self/status of whoever reads it.
func (h *host) selfStatus() string {
	uid := 0
	if h.settings.Unprivileged {
		uid = 1000
	}
	return fmt.Sprintf("Name:\tcat\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\nGid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\nCapEff:\t000001ffffffffff\n", uid)
}

// unixSockets is /proc/net/unix: who listens where.
func (h *host) unixSockets() string {
	var b strings.Builder
	b.WriteString("Num       RefCount Protocol Flags    Type St Inode Path\n")
	for _, pid := range slices.Sorted(maps.Keys(h.state.Procs)) {
		for i, s := range h.state.Procs[pid].Sockets {
			fmt.Fprintf(&b, "0000000000000000: 00000002 00000000 00010000 0001 01 %d%d %s\n", pid, i, s)
		}
	}
	return b.String()
}

func (c *Conn) expand(pattern string) (names []string, glob bool, err error) {
	if !path.IsAbs(pattern) {
		return nil, false, fmt.Errorf("read %q: not an absolute path", pattern)
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		return []string{pattern}, false, nil
	}
	found, err := fs.Glob(os.DirFS(c.Root()), pattern[1:])
	if err != nil {
		return nil, true, fmt.Errorf("read %q: %w", pattern, err)
	}
	for _, f := range found {
		names = append(names, "/"+f)
	}
	return names, true, nil
}

// WriteFile replaces a file of the host.
func (c *Conn) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	if err := c.begin(ctx, "WriteFile", name); err != nil {
		return err
	}
	if !path.IsAbs(name) {
		return fmt.Errorf("write %q: not an absolute path", name)
	}
	return c.locked(func(h *host) error {
		if err := h.write(name, data, mode); err != nil {
			return fmt.Errorf("on the fake host: write %s: %w", name, err)
		}
		return nil
	})
}

func (h *host) write(name string, data []byte, mode fs.FileMode) error {
	if h.settings.Unprivileged && !strings.HasPrefix(name, "/tmp/") {
		return fs.ErrPermission
	}
	file := h.real(name, true)
	at := h.resolve(name, true)
	if strings.HasPrefix(at, "/sys/") || strings.HasPrefix(at, "/proc/") {
		if _, err := os.Stat(file); err != nil {
			return err
		}
		return h.writeKernel(at, file, data)
	}
	delete(h.state.Settings.Owners, clean(name)) // it is a new file
	return replace(file, data, mode)
}

// put writes a file that the host itself keeps, with its folders.
func (c *Conn) put(name, text string) error {
	file := c.real(name, true)
	if old, err := os.ReadFile(file); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return replace(file, []byte(text), 0o644)
}

// get reads one; "" when it is not there.
func (c *Conn) get(name string) string {
	b, _ := os.ReadFile(c.real(name, true))
	return string(b)
}

func (c *Conn) exists(name string) bool {
	_, err := os.Stat(c.real(name, true))
	return err == nil
}

func (h *host) appendTo(name, text string) error { return h.put(name, h.get(name)+text) }

package settings

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/dropin"
)

// opposite flags of mount(8).
func opposite(flag string) string {
	return map[string]string{"noexec": "exec", "nosuid": "suid", "nodev": "dev", "noatime": "atime", "nodiratime": "diratime", "sync": "async", "ro": "rw", "rw": "ro",
		"exec": "noexec", "suid": "nosuid", "dev": "nodev", "atime": "noatime", "async": "sync"}[flag]
}

// revert are the options that take others back to what was found, as far as that is known.
func revert(options, found []string) []string {
	var out []string
	for _, o := range options {
		key, _, pair := strings.Cut(o, "=")
		switch {
		case slices.Contains(found, o):
		case pair:
			for _, f := range found {
				if strings.HasPrefix(f, key+"=") {
					out = append(out, f)
				}
			}
		case opposite(o) == "":
		case strings.HasPrefix(o, "no") || o == "sync" || o == "ro" || slices.Contains(found, opposite(o)):
			out = append(out, opposite(o))
		}
	}
	return out
}

// converge mounts, or remounts when options differ.
func (w wantedMount) converge(ctx context.Context, h providers.Host, c *cache[*mounts], u undoMount, dropped []string) error {
	_, m, err := mountsOf(ctx, h)
	if err != nil {
		return err
	}
	have, there := m.at(w.target)
	if !there {
		if len(u.Folders) > 0 {
			if _, err := run(ctx, h, "mkdir", "-p", "--", w.target); err != nil {
				return fmt.Errorf("make mount point: %w", err)
			}
		}
		args := []string{"mount", "-t", w.typ}
		if len(w.options) > 0 {
			args = append(args, "-o", strings.Join(w.options, ","))
		}
		if _, err := run(ctx, h, append(args, "--", w.source, w.target)...); err != nil {
			return fmt.Errorf("mount %s on %s: %w", w.source, w.target, err)
		}
		return w.verify(ctx, h, c)
	}
	if have.typ != w.typ || !w.sameSource(have) {
		return fmt.Errorf("mount %s (%s) on %s: %s (%s) is mounted there", w.source, w.typ, w.target, have.source, have.typ)
	}
	var options []string
	wrong := w.differs(have.options)
	for _, o := range w.options {
		if _, is := wrong[o]; is {
			options = append(options, o)
		}
	}
	for _, o := range revert(dropped, u.Options) { // unless another of the options has its say
		key, _, _ := strings.Cut(o, "=")
		if !slices.ContainsFunc(w.options, func(n string) bool { k, _, _ := strings.Cut(n, "="); return k == key || k == opposite(key) }) {
			options = append(options, o)
		}
	}
	if err := w.remount(ctx, h, options); err != nil {
		return err
	}
	return w.verify(ctx, h, c)
}

func (w wantedMount) remount(ctx context.Context, h providers.Host, options []string) error {
	if len(options) == 0 {
		return nil
	}
	if _, err := run(ctx, h, "mount", "-o", "remount,"+strings.Join(options, ","), "--", w.target); err != nil {
		return fmt.Errorf("remount %s with %s: %w", w.target, strings.Join(options, ","), err)
	}
	return nil
}

func (w wantedMount) verify(ctx context.Context, h providers.Host, c *cache[*mounts]) error {
	c.drop()
	_, m, err := mountsOf(ctx, h)
	if err != nil {
		return err
	}
	have, there := m.at(w.target)
	if !there {
		return fmt.Errorf("mount %s on %s: mount reported success, and it is not in %s", w.source, w.target, mountInfo)
	}
	if wrong := w.differs(have.options); len(wrong) > 0 {
		return fmt.Errorf("mount %s on %s with %s: it has %s", w.source, w.target, strings.Join(w.options, ","), strings.Join(have.options, ","))
	}
	return nil
}

// restore unmounts what was not mounted before, and puts back the options of what was.
func (w wantedMount) restore(ctx context.Context, h providers.Host, c *cache[*mounts], u undoMount) error {
	_, m, err := mountsOf(ctx, h)
	if err != nil {
		return err
	}
	have, there := m.at(w.target)
	if u.There {
		if !there || have.typ != w.typ {
			return nil // somebody unmounted it
		}
		return w.remount(ctx, h, slices.DeleteFunc(revert(w.options, u.Options), func(o string) bool { return slices.Contains(have.options, o) }))
	}
	if there {
		if have.typ != w.typ || !w.sameSource(have) {
			return fmt.Errorf("unmount %s: by now %s (%s) is mounted there, and not %s (%s)", w.target, have.source, have.typ, w.source, w.typ)
		}
		if _, err := run(ctx, h, "umount", "--", w.target); err != nil {
			if users := w.users(ctx, h); users != "" {
				err = fmt.Errorf("%w. It is used by %s: end them and run destroy again", err, users)
			}
			return fmt.Errorf("unmount %s: %w", w.target, err)
		}
	}
	return removeFolders(ctx, h, u.Folders)
}

// users names the processes that have something open on a mount, as far as they can be seen; "" when none is.
func (w wantedMount) users(ctx context.Context, h providers.Host) string {
	// Processes come and go meanwhile, so that find fails with what it found. The target holds no wildcard.
	out, _ := run(ctx, h, "find", "/proc", "-maxdepth", "3", "-regex", `/proc/[0-9]+/\(cwd\|root\|exe\|fd/[0-9]+\)`, "(", "-lname", w.target, "-o", "-lname", w.target+"/*", ")", "-printf", `%p\n`)
	var names []string
	pids := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^/proc/([0-9]+)/`).FindAllStringSubmatch(out, -1) {
		pids[path.Join("/proc", m[1], "comm")] = true
	}
	for file := range pids {
		comm, err := h.Conn().ReadFiles(ctx, file)
		if err == nil && comm[file] != nil {
			names = append(names, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(comm[file])), path.Base(path.Dir(file))))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// keep gives fstab our line, or takes it away.
func (w wantedMount) keep(ctx context.Context, req providers.ApplyRequest, c *cache[*mounts], u undoMount, persistent bool) error {
	c.drop()
	_, m, err := mountsOf(ctx, req.Host)
	if err != nil {
		return err
	}
	table := dropin.TakeLine(m.fstab, req.Mark)
	if persistent {
		if table, err = dropin.PutLine(m.fstab, req.Mark, w.line()); err != nil {
			return fmt.Errorf("write %s: %w", fstab, err)
		}
	}
	conn := req.Host.Conn()
	switch {
	case bytes.Equal(table, m.fstab):
		return nil
	case len(table) == 0 && u.NoTable:
		_, err = run(ctx, req.Host, "rm", "-f", "--", fstab)
	default:
		err = conn.WriteFile(ctx, fstab, table, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", fstab, err)
	}
	return nil
}

package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/attr"
)

// Apply writes the file, or puts back what was found.
func (File) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := recorded[undoFile](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, removeFile(ctx, req, u)
	}
	name := attr.Text(req.Planned, "path")
	data, err := contentOf(req.Planned)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	bits, err := strconv.ParseUint(attr.Text(req.Planned, "mode"), 8, 16)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	owner, group := attr.Text(req.Planned, "owner"), attr.Text(req.Planned, "group")
	s, err := lookFile(ctx, req.Host, name)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if p := s.refuse(name, req.Host.Name()); p != nil && !s.regular() {
		return providers.ApplyResult{}, errors.New(p.Detail)
	}
	// A file that is replaced is a new one of root's: it gets back the owner that it had.
	if owner == "" && s.there {
		owner = s.uid
	}
	if group == "" && s.there {
		group = s.gid
	}
	if !s.there && len(u.Folders) > 0 {
		if _, err := run(ctx, req.Host, "mkdir", "-p", "--", path.Dir(name)); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("make the folder of %s: %w", name, err)
		}
	}
	if err := writeFile(ctx, req.Host, name, data, uint32(bits), owner+":"+group, s); err != nil {
		return providers.ApplyResult{}, err
	}
	s, err = lookFile(ctx, req.Host, name)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if string(s.data) != string(data) || s.mode&0o7777 != uint32(bits) {
		return providers.ApplyResult{}, fmt.Errorf("%s was written and has %d bytes and mode %04o; want %d bytes and mode %04o: something else writes it", name, len(s.data), s.mode&0o7777, len(data), bits)
	}
	hash := cty.StringVal(sum(data))
	if !req.Planned.GetAttr("content_sensitive").IsNull() {
		hash = cty.NullVal(cty.String)
	}
	return providers.ApplyResult{New: with(req.Planned, map[string]cty.Value{"sha256": hash})}, nil
}

// contentOf is what is to be written. A source must be what it was for the plan.
func contentOf(v cty.Value) ([]byte, error) {
	for _, n := range []string{"content", "content_sensitive"} {
		if c := v.GetAttr(n); !c.IsNull() {
			return []byte(c.AsString()), nil
		}
	}
	source := attr.Text(v, "source")
	data, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	if want := attr.Text(v, "sha256"); want != "" && want != sum(data) {
		return nil, fmt.Errorf("%s has changed since the plan was made: make a new one", source)
	}
	return data, nil
}

// writeFile makes a file as wanted. What is right already is not touched. owner is "USER:GROUP", either may be empty.
func writeFile(ctx context.Context, h providers.Host, name string, data []byte, bits uint32, owner string, s *seenFile) error {
	fresh := !s.there || string(s.data) != string(data)
	if fresh {
		if err := h.Conn().WriteFile(ctx, name, data, fileMode(bits)); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if owner != ":" && (fresh || !owned(s, owner)) {
		if _, err := run(ctx, h, "chown", "--", owner, name); err != nil {
			return fmt.Errorf("give %s to %s: %w", name, owner, err)
		}
	}
	// After chown, which takes set-user-ID away.
	if !fresh && s.mode&0o7777 != bits || bits > 0o777 {
		if _, err := run(ctx, h, "chmod", "--", fmt.Sprintf("%04o", bits), name); err != nil {
			return fmt.Errorf("set the mode of %s: %w", name, err)
		}
	}
	if !fresh {
		return nil
	}
	selinux, err := h.Conn().ReadFiles(ctx, "/sys/fs/selinux/enforce")
	if err != nil || len(selinux) == 0 {
		return err
	}
	if _, err := run(ctx, h, "restorecon", "--", name); err != nil {
		if status, exited := exited(err); !exited || status != 127 {
			return fmt.Errorf("set the SELinux context of %s: %w", name, err)
		}
	}
	return nil
}

// owned says that a file belongs to "USER:GROUP", by name or number.
func owned(s *seenFile, owner string) bool {
	for _, u := range []string{"", s.user, s.uid} {
		for _, g := range []string{"", s.group, s.gid} {
			if owner == u+":"+g {
				return true
			}
		}
	}
	return false
}

// removeFile puts back what was found.
func removeFile(ctx context.Context, req providers.ApplyRequest, u undoFile) error {
	name := attr.Text(req.Prior, "path")
	if u.There {
		s, err := lookFile(ctx, req.Host, name)
		if err != nil {
			return err
		}
		if s.there && !s.regular() {
			return fmt.Errorf("put back %s: it is no regular file any more; somebody else replaced it", name)
		}
		return writeFile(ctx, req.Host, name, u.Content, u.Mode, u.Owner, s)
	}
	if _, err := run(ctx, req.Host, "rm", "-f", "--", name); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return removeFolders(ctx, req.Host, u.Folders)
}

type foldersKey struct{}

// folders are those that were made for files and could not be removed yet because something is in them: other files of the testbed, mostly, which
// may not know that the folder was made for one of them.
type folders struct {
	mu   sync.Mutex
	left []string
}

// removeFolders removes folders that were made for a file, the innermost first, and those that earlier files of this run have left. One that is not empty
// stays.
func removeFolders(ctx context.Context, h providers.Host, made []string) error {
	v, err := h.Shared(ctx, foldersKey{}, func(context.Context) (any, error) { return &folders{}, nil })
	if err != nil {
		return err
	}
	f := v.(*folders)
	f.mu.Lock()
	defer f.mu.Unlock()
	all := append(slices.Clone(made), f.left...)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	all = slices.Compact(all)
	f.left = nil
	for _, d := range all {
		_, err := run(ctx, h, "rmdir", "--", d)
		if _, exited := exited(err); exited {
			f.left = append(f.left, d) // not empty, or gone
		} else if err != nil {
			return err
		}
	}
	return nil
}

package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"plumb/providers"
)

// values are small files of the kernel by path, without the newline at their end.
type values map[string]string

func readValues(ctx context.Context, h providers.Host, patterns ...string) (values, error) {
	files, err := h.Conn().ReadFiles(ctx, patterns...)
	if err != nil && len(files) == 0 {
		return nil, err
	}
	out := values{}
	for name, b := range files { // what cannot be read, of a CPU that is off, say, is not there
		out[name] = strings.TrimSuffix(string(b), "\n")
	}
	return out, nil
}

// undoValues is what was found in files that are managed.
type undoValues struct {
	Found values `json:"found"`
}

// note adds files that were not managed before.
func (u *undoValues) note(found values, files []string) {
	if u.Found == nil {
		u.Found = values{}
	}
	for _, f := range files {
		if _, noted := u.Found[f]; noted {
			continue
		}
		if v, there := found[f]; there {
			u.Found[f] = v
		}
	}
}

// target is what files should hold: what is wanted, and in all others that were managed once what was found.
func (u undoValues) target(want values) values {
	out := maps.Clone(u.Found)
	if out == nil {
		out = values{}
	}
	maps.Copy(out, want)
	return out
}

// setValues writes what differs, in the order that is given (those that are not there are left out), and reads back. same says that two values of a file mean the same.
func setValues(ctx context.Context, h providers.Host, order []string, found, target values, same func(file, a, b string) bool) error {
	var written []string
	for _, f := range order {
		have, there := found[f]
		want, wanted := target[f]
		if !there || !wanted || same(f, have, want) {
			continue
		}
		if err := h.Conn().WriteFile(ctx, f, []byte(want+"\n"), 0o644); err != nil {
			return &refusedError{file: f, want: want, have: have, err: err}
		}
		written = append(written, f)
	}
	if len(written) == 0 {
		return nil
	}
	now, err := readValues(ctx, h, written...)
	if err != nil {
		return err
	}
	for _, f := range written {
		if !same(f, now[f], target[f]) {
			return fmt.Errorf("%s was set to %q and is %q (it was %q)", f, target[f], now[f], found[f])
		}
	}
	return nil
}

// refusedError says that the kernel refuses a value.
type refusedError struct {
	file, want, have string
	err              error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the kernel refuses %q in %s, which stays %q: %v", e.want, e.file, e.have, e.err)
}

func (e *refusedError) Unwrap() error { return e.err }

// ioError says that an error is EIO, also from a host that says so in words.
func ioError(err error) bool {
	return errors.Is(err, syscall.EIO) || err != nil && strings.Contains(strings.ToLower(err.Error()), "input/output error")
}

func sortedFiles(v values) []string { return slices.Sorted(maps.Keys(v)) }

// Package durable puts files in place so that a crash leaves the old content or the new one.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace makes tmp, an open file in the folder of path that holds the new content, the file at path, and closes it. After a crash at any point path holds the old
// content or the new one, never a mixture and never nothing; tmp may be left over. written is how writing went: an error gives the replacement up.
// before, if any, is called when only the rename is left. After an error tmp is gone, and path is as it was unless only its folder could not be made durable.
func Replace(tmp *os.File, path string, mode fs.FileMode, written error, before func()) (err error) {
	defer func() {
		if err != nil {
			os.Remove(tmp.Name()) // nothing is there once it is renamed
		}
	}()
	if written == nil {
		written = tmp.Chmod(mode)
	}
	if written == nil {
		written = tmp.Sync()
	}
	if err := errors.Join(written, tmp.Close()); err != nil {
		return err
	}
	if before != nil {
		before()
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the entries of a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

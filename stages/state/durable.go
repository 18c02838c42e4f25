package state

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile replaces a file so that after a crash at any point it holds the old content or the new one, never a mixture
// and never nothing. The content goes through path+".tmp", which a crash may leave behind and the next replacement takes over; so only the
// holder of the lock may call it. Mode is 0600: attributes may be secrets. point, if any, is told before the rename.
func replaceFile(path string, data []byte, point func(string)) (err error) {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o600) // a leftover may have another mode
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if point != nil {
		point("before the rename of " + filepath.Base(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the entries of a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

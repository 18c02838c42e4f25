package state

import (
	"os"
	"path/filepath"

	"plumb/stages/internal/durable"
)

// replaceFile replaces a file so that after a crash at any point it holds the old content or the new one, never a mixture
// and never nothing. The content goes through path+".tmp", which a crash may leave behind and the next replacement takes over; so only the
// holder of the lock may call it. Mode is 0600: attributes may be secrets. point, if any, is told before the rename.
func replaceFile(path string, data []byte, point func(string)) error {
	tmp, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // a leftover may have another mode
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	return durable.Replace(tmp, path, 0o600, err, func() {
		if point != nil {
			point("before the rename of " + filepath.Base(tmp.Name()))
		}
	})
}

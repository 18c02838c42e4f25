package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Files is where a configuration is read from: a folder tree, or what a saved plan carries.
type Files interface {
	// List names the files (not the folders) directly in dir, without their folder. A folder that is not there
	// is an error that wraps fs.ErrNotExist.
	List(dir string) ([]string, error)
	// Read returns the content of the file; name is a name of List joined to its folder.
	Read(name string) ([]byte, error)
}

// OS reads the file system of this machine.
type OS struct{}

// List names the files in dir; symbolic links to files count.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Read reads a file.
func (OS) Read(name string) ([]byte, error) { return os.ReadFile(name) }

// Memory holds files by path, as Config.Sources does.
type Memory map[string][]byte

// List names the files directly in dir.
func (m Memory) List(dir string) ([]string, error) {
	var out []string
	dir = filepath.Clean(dir)
	for name := range m {
		if filepath.Dir(name) == dir {
			out = append(out, filepath.Base(name))
		}
	}
	if out == nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	slices.Sort(out)
	return out, nil
}

// Read returns the content of a file.
func (m Memory) Read(name string) ([]byte, error) {
	if b, ok := m[filepath.Clean(name)]; ok {
		return b, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Package dropin keeps files of Plumb's own in the folders of fragments that a system reads (/etc/sysctl.d, /etc/modprobe.d, /etc/udev/rules.d), and
// lines of Plumb's own in files that are everybody's (/etc/fstab). Whose they are stands in a comment: "# Written by Plumb: testbed X, ADDRESS".
//
// Each instance has a file of its own, so that no two of them ever have to agree about one. A file of that name without our comment is never touched.
package dropin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/marked"
)

// Header is the comment that says whose a file is, without a newline.
func Header(m providers.Mark) string {
	return fmt.Sprintf("# Written by Plumb: testbed %s, %s", oneLine(m.Testbed), oneLine(m.Address))
}

// oneLine keeps a name from being more than a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}

// Path is where the file of an instance is: /etc/sysctl.d/PREFIX-NAME-HASH.EXT. No other instance of any testbed has the same.
func Path(dir, prefix, ext string, m providers.Mark) string {
	sum := sha256.Sum256([]byte(m.Testbed + "\x00" + m.Address))
	name := m.Address
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	name = marked.Tidy(name)
	// udev and modprobe take dots in names, run-parts does not.
	name = strings.ReplaceAll(name[:min(24, len(name))], ".", "_")
	return path.Join(dir, prefix+"-"+name+"-"+hex.EncodeToString(sum[:4])+ext)
}

// Content is a whole file of ours.
func Content(m providers.Mark, body string) []byte {
	return []byte(Header(m) + "\n" + body)
}

// Body is what a file of ours holds below its header. ours is false for a file of somebody else, another testbed included.
func Body(file []byte, m providers.Mark) (body string, ours bool) {
	return strings.CutPrefix(string(file), Header(m)+"\n")
}

// Read reads the file of an instance. there is false when it does not exist. A file that is not ours is an error that wraps providers.ErrForeign.
func Read(ctx context.Context, conn providers.Conn, file string, m providers.Mark) (body string, there bool, err error) {
	files, err := conn.ReadFiles(ctx, file)
	if err != nil {
		return "", false, err
	}
	b, there := files[file]
	if !there {
		return "", false, nil
	}
	body, ours := Body(b, m)
	if !ours {
		return "", true, foreign(file, m)
	}
	return body, true, nil
}

func foreign(file string, m providers.Mark) error {
	return fmt.Errorf("%s %w: its first line is not %q. Move it away, or give it that line to have it replaced", file, providers.ErrForeign, Header(m))
}

// Write makes or replaces the file of an instance, readable by all, and its folder when that is missing. It does nothing when the file is as wanted
// already, and refuses a file that is not ours (providers.ErrForeign).
func Write(ctx context.Context, conn providers.Conn, file string, m providers.Mark, body string) error {
	have, there, err := Read(ctx, conn, file, m)
	if err != nil || there && have == body {
		return err
	}
	if !there {
		if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"mkdir", "-p", "--", path.Dir(file)}}); err != nil {
			return fmt.Errorf("make the folder of %s: %w", file, err)
		}
	}
	return conn.WriteFile(ctx, file, Content(m, body), 0o644)
}

// Remove removes the file of an instance. It does nothing when there is none, and refuses one that is not ours (providers.ErrForeign).
func Remove(ctx context.Context, conn providers.Conn, file string, m providers.Mark) error {
	_, there, err := Read(ctx, conn, file, m)
	if err != nil || !there {
		return err
	}
	if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"rm", "-f", "--", file}}); err != nil {
		return fmt.Errorf("remove %s: %w", file, err)
	}
	return nil
}

// ErrLine says that a text cannot stand in a line.
var ErrLine = errors.New("holds a line break or a NUL byte")

// Line finds our line in a file that is everybody's: the one that follows our header. there is false when there is none.
func Line(file []byte, m providers.Mark) (line string, there bool) {
	lines := strings.Split(string(file), "\n")
	for i, l := range lines[:len(lines)-1] {
		if l == Header(m) {
			return lines[i+1], true
		}
	}
	return "", false
}

// PutLine gives a file our line, with the header above it: where it is already, else at the end. All other lines stay as they are.
func PutLine(file []byte, m providers.Mark, line string) ([]byte, error) {
	if strings.ContainsAny(line, "\n\x00") {
		return nil, fmt.Errorf("%q %w", line, ErrLine)
	}
	if _, there := Line(file, m); there {
		lines := strings.Split(string(file), "\n")
		for i, l := range lines {
			if l == Header(m) {
				lines[i+1] = line
				break
			}
		}
		return []byte(strings.Join(lines, "\n")), nil
	}
	text := string(TakeLine(file, m)) // a header that lost its line
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text + Header(m) + "\n" + line + "\n"), nil
}

// TakeLine removes our header and the line below it. All other lines stay as they are.
func TakeLine(file []byte, m providers.Mark) []byte {
	lines := strings.SplitAfter(string(file), "\n")
	for i, l := range lines {
		if strings.TrimSuffix(l, "\n") == Header(m) {
			return []byte(strings.Join(append(lines[:i:i], lines[min(i+2, len(lines)):]...), ""))
		}
	}
	return file
}

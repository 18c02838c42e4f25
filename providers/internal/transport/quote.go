package transport

import "strings"

// Quote makes one word of s for a POSIX shell. It is the only way by which data may become part of a shell line. A NUL cannot be
// part of an argument and is left out.
func Quote(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

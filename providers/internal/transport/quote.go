package transport

import "strings"

// Quote makes one line of POSIX shell out of argv: a shell that reads it gets just these words, whatever is in them. A word with a NUL byte
// cannot be an argument of any command: the caller refuses those.
func Quote(args ...string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if a != "" && strings.Trim(a, plain) == "" {
			b.WriteString(a)
			continue
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(a, "'", `'\''`))
		b.WriteByte('\'')
	}
	return b.String()
}

// plain characters mean nothing to a shell wherever they stand in a word. "~", "=" and "#" are not among them.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+"

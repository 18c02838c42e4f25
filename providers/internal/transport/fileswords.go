package transport

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"plumb/providers"
)

// words are a pattern as readScript takes it: P and a path, or G and a pattern of the shell. The shell's wildcards do not stand for the dot that a name begins with, as path.Match's do:
// then there is a second word that has it.
func words(p string) []string {
	if !strings.ContainsAny(p, `*?[\`) {
		return []string{"P" + p}
	}
	all := []string{""}
	for _, c := range strings.Split(strings.TrimPrefix(p, "/"), "/") {
		alternatives := []string{shellPattern(c)}
		if dotted := dotted(c); dotted != "" {
			alternatives = append(alternatives, dotted)
		}
		var longer []string
		for _, a := range all {
			for _, b := range alternatives {
				longer = append(longer, a+"/"+b)
			}
		}
		all = longer
	}
	for i := range all {
		all[i] = "G" + all[i]
	}
	return all
}

// dotted is the pattern of those names that begin with a dot and that a wildcard at the beginning stands for; "" for none. What it lists too much is left out later.
func dotted(c string) string {
	switch {
	case strings.HasPrefix(c, "*"):
		return "." + shellPattern(c)
	case strings.HasPrefix(c, "?"):
		return "." + shellPattern(c[1:])
	case strings.HasPrefix(c, "["):
		_, rest := class(c)
		if ok, _ := path.Match(c[:len(c)-len(rest)], "."); ok {
			return "." + shellPattern(rest)
		}
	}
	return ""
}

// shellPattern is a pattern without slashes as the shell spells it.
func shellPattern(p string) string {
	var b strings.Builder
	for p != "" {
		switch c := p[0]; {
		case c == '[':
			var s string
			s, p = class(p)
			b.WriteString(s)
			continue
		case c == '\\' && len(p) > 1:
			p = p[1:]
			b.WriteString(literal(p[0]))
		case c == '*' || c == '?':
			b.WriteByte(c)
		default:
			b.WriteString(literal(c))
		}
		p = p[1:]
	}
	return b.String()
}

// literal is a character that stands for itself.
func literal(c byte) string {
	switch c {
	case '*', '?', '[':
		return "[" + string(c) + "]"
	case '\\':
		return `[\\]`
	}
	return string([]byte{c})
}

// class translates the class that a valid pattern begins with. The two differ in how they say "none of these", and in what a "!" or "]" in it means.
func class(p string) (shell, rest string) {
	var b strings.Builder
	b.WriteByte('[')
	p = p[1:]
	if strings.HasPrefix(p, "^") {
		b.WriteByte('!')
		p = p[1:]
	}
	for p != "" && p[0] != ']' {
		c := p[0]
		switch {
		case c == '\\' && len(p) > 1:
			p = p[1:]
			b.WriteString("\\" + p[:1])
		case c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= 0x80:
			b.WriteByte(c)
		default:
			b.WriteString("\\" + p[:1])
		}
		p = p[1:]
	}
	b.WriteByte(']')
	return b.String(), strings.TrimPrefix(p, "]")
}

// wants says whether a name is one that a call asked for; "" concerns all.
func (r *reading) wants(name string) bool {
	if name == "" {
		return true
	}
	if strings.Contains(name+"/", "/./") || strings.Contains(name+"/", "/../") {
		return slices.Contains(r.patterns, name) // no wildcard stands for these
	}
	return slices.ContainsFunc(r.patterns, func(p string) bool {
		if p == name {
			return true
		}
		ok, _ := path.Match(p, name)
		return ok
	})
}

var errAnswer = errors.New("read files: the host's answer is cut off")

// parseRead takes the answer of readScript apart.
func parseRead(res providers.Result, sep string) (map[string][]byte, map[string]error, error) {
	head, rest, ok := bytes.Cut(res.Stdout, []byte("\n"))
	size, err := strconv.Atoi(strings.TrimSpace(string(head)))
	if !ok || err != nil || size < 0 || size > len(rest) {
		return nil, nil, errAnswer
	}
	list := strings.Split(strings.TrimSuffix(string(rest[:size]), "\x00"), "\x00")
	if size == 0 {
		list = nil
	}
	rest = rest[size:]
	said := complaints(res.Stderr)
	found, errs := map[string][]byte{}, map[string]error{}
	for i := 0; i+1 < len(list); i += 2 {
		data, after, ok := bytes.Cut(rest, []byte(sep))
		if !ok {
			return nil, nil, errAnswer
		}
		rest = after
		name := list[i]
		problem := said.take(name)
		switch {
		case problem == nil:
			found[name] = bytes.Clone(data)
		case absent(problem):
		default:
			errs[name] = &fs.PathError{Op: "read", Path: name, Err: problem}
		}
	}
	for _, c := range said { // of names that cat spells in a way of its own
		if !absent(c.errno) {
			errs[""] = &fs.PathError{Op: "read", Path: c.about, Err: c.errno}
		}
	}
	return found, errs, nil
}

// complaint is what cat said of a file. GNU's says `cat: NAME: TEXT`, busybox's also `cat: can't open 'NAME': TEXT`.
type complaint struct {
	about string // what stands between "cat: " and the text
	errno syscall.Errno
}

type complaintList []complaint

func complaints(stderr []byte) complaintList {
	var out complaintList
	for line := range strings.Lines(string(stderr)) {
		line = strings.TrimSpace(line)
		e := errnoOf(line)
		about, ok := strings.CutPrefix(line, "cat: ")
		if e == 0 || !ok {
			continue
		}
		about = strings.TrimSuffix(about[:len(about)-len(e.Error())], ": ")
		if rest, ok := strings.CutPrefix(about, "can't open "); ok {
			about = rest
		} else if rest, ok := strings.CutPrefix(about, "read error: "); ok {
			about = rest
		}
		out = append(out, complaint{about, e})
	}
	return out
}

// take is what was said of a file, and is then forgotten; nil for nothing. GNU's cat puts names with characters that a shell would take for its own in quotes.
func (l *complaintList) take(name string) error {
	for i, c := range *l {
		if c.about == name || c.about == "'"+name+"'" || c.about == `"`+name+`"` {
			*l = slices.Delete(*l, i, i+1)
			return c.errno
		}
	}
	return nil
}

// errnoOf finds the error that a tool's message ends with, in the words of strerror(3).
func errnoOf(text string) syscall.Errno {
	for _, e := range []syscall.Errno{syscall.ENOENT, syscall.ESRCH, syscall.EACCES, syscall.EPERM, syscall.EISDIR, syscall.ENOTDIR, syscall.EINVAL, syscall.EBUSY, syscall.ENODEV, syscall.ENXIO,
		syscall.EIO, syscall.EEXIST, syscall.ENOSPC, syscall.ENOMEM, syscall.EROFS, syscall.ERANGE, syscall.EOPNOTSUPP, syscall.EAGAIN, syscall.EFBIG, syscall.ELOOP, syscall.ENOTEMPTY, syscall.E2BIG, syscall.EPROTO,
		syscall.ENAMETOOLONG, syscall.ECANCELED, syscall.ETIMEDOUT, syscall.ENODATA, syscall.ECHILD, syscall.EFAULT, syscall.EXDEV, syscall.EDQUOT, syscall.ETXTBSY} {
		if len(text) >= len(e.Error()) && strings.EqualFold(text[len(text)-len(e.Error()):], e.Error()) {
			return e
		}
	}
	return 0
}

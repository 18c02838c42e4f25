// Package diagfmt shows diagnostics: as text for people, with the source line, the subject marked in it and the values
// of everything the expression refers to, and as JSON for programs. The text is made from the JSON form, so
// that both always say the same. Sensitive values never appear in either.
//
// Everything here is a pure function of the diagnostics and their sources. Start reading at New.
package diagfmt

import (
	"bufio"
	"bytes"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Diagnostic is the JSON form of a diagnostic.
type Diagnostic struct {
	Severity string   `json:"severity"` // "error" or "warning"
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail,omitempty"`
	Address  string   `json:"address,omitempty"`
	Range    *Range   `json:"range,omitempty"`
	Snippet  *Snippet `json:"snippet,omitempty"`
}

// Range is a place in a file; lines and columns count from 1, bytes from 0, the end is exclusive.
type Range struct {
	Filename string `json:"filename"`
	Start    Pos    `json:"start"`
	End      Pos    `json:"end"`
}

// Pos is a position in a file.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Snippet is the source around a range.
type Snippet struct {
	Context   string  `json:"context,omitempty"` // header of the block: resource "ovs_port" "p0"
	Code      string  `json:"code"`              // whole lines
	StartLine int     `json:"start_line"`
	Start     int     `json:"highlight_start_offset"` // bytes into Code
	End       int     `json:"highlight_end_offset"`
	Values    []Value `json:"values,omitempty"`
}

// Value says what something that the expression refers to is.
type Value struct {
	Traversal string `json:"traversal"` // var.x
	Statement string `json:"statement"` // "is 3"
}

// Addressed is what a diagnostic's Extra may be to say which object the diagnostic is about.
type Addressed interface{ DiagnosticAddress() string }

// New makes the JSON form. sources are the files by the names in the ranges; a file that is not there has no
// snippet. dir is the folder that absolute file names are shown relative to; "" shows them as they are.
func New(d *hcl.Diagnostic, sources map[string][]byte, dir string) Diagnostic {
	out := Diagnostic{Severity: "error", Summary: d.Summary, Detail: nearby(strings.TrimRight(d.Detail, "\n"), dir)}
	if d.Severity == hcl.DiagWarning {
		out.Severity = "warning"
	}
	if a, ok := hcl.DiagnosticExtra[Addressed](d); ok {
		out.Address = a.DiagnosticAddress()
	}
	if d.Subject == nil || d.Subject.Filename == "" {
		return out
	}
	subject := *d.Subject
	src, have := sources[subject.Filename]
	if have {
		subject = blockHeader(src, subject)
	}
	out.Range = &Range{Filename: relative(subject.Filename, dir), Start: Pos(subject.Start), End: Pos(subject.End)}
	if have {
		out.Snippet = snippet(src, subject, d.Context)
	}
	if out.Snippet != nil {
		out.Snippet.Values = values(d)
	}
	return out
}

// All makes the JSON form of several, never nil.
func All(diags hcl.Diagnostics, sources map[string][]byte, dir string) []Diagnostic {
	out := make([]Diagnostic, 0, len(diags))
	for _, d := range diags {
		out = append(out, New(d, sources, dir))
	}
	return out
}

func relative(name, dir string) string {
	if dir == "" || !filepath.IsAbs(name) {
		return name
	}
	rel, err := filepath.Rel(dir, name)
	if err != nil || strings.Count(rel, "..") > 2 { // far away: the absolute name is easier to read
		return name
	}
	return rel
}

// nearby shortens the names of files below dir in a text, as relative does in ranges.
func nearby(text, dir string) string {
	if !filepath.IsAbs(dir) || dir == "/" {
		return text
	}
	var b strings.Builder
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for {
		i := strings.Index(text, prefix)
		if i < 0 {
			return b.String() + text
		}
		b.WriteString(text[:i])
		last, _ := utf8.DecodeLastRuneInString(text[:i])
		if i > 0 && last != utf8.RuneError && (unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune("/._-", last)) { // the end of another path
			b.WriteString(prefix)
		}
		text = text[i+len(prefix):]
	}
}

// blockHeader turns a range that is only a block's opening brace, or empty before it, where HCL says that something is missing in the block, into the
// range of the block's header.
func blockHeader(src []byte, r hcl.Range) hcl.Range {
	at := r.Start.Byte
	if r.End.Byte > at+1 || r.End.Byte < at || at < 0 || at >= len(src) || src[at] != '{' || strings.HasSuffix(r.Filename, ".json") {
		return r
	}
	begin := bytes.LastIndexByte(src[:at], '\n') + 1
	line := src[begin:at]
	text := bytes.TrimSpace(line)
	if len(text) == 0 || utf8.RuneCount(line) != r.Start.Column-1 { // a lone brace, or columns that are not characters
		return r
	}
	indent := len(line) - len(bytes.TrimLeft(line, " \t"))
	r.Start = hcl.Pos{Line: r.Start.Line, Column: indent + 1, Byte: begin + indent}
	r.End = hcl.Pos{Line: r.Start.Line, Column: indent + 1 + utf8.RuneCount(text), Byte: begin + indent + len(text)}
	return r
}

// maxLines bounds a snippet: what is marked is found by its first lines.
const maxLines = 8

// snippet cuts the lines of the subject, and those of the context as long as they are few, out of the source; nil when
// the range is not in the source.
func snippet(src []byte, subject hcl.Range, context *hcl.Range) *Snippet {
	if subject.Start.Byte < 0 || subject.Start.Byte > len(src) || subject.End.Byte < subject.Start.Byte {
		return nil
	}
	first, last := subject.Start.Line, subject.End.Line
	if context != nil && context.Filename == subject.Filename && context.Overlaps(subject) && context.End.Line-context.Start.Line < maxLines {
		first, last = min(first, context.Start.Line), max(last, context.End.Line)
	}
	if last > subject.Start.Line && last-first >= maxLines {
		last = first + maxLines - 1
	}
	out := &Snippet{StartLine: first, Context: header(src, subject)}
	begin, end := -1, -1
	sc := hcl.NewRangeScanner(src, subject.Filename, bufio.ScanLines)
	for sc.Scan() {
		r := sc.Range()
		if r.Start.Line < first || r.Start.Line > last {
			continue
		}
		if begin < 0 {
			begin = r.Start.Byte
		}
		end = r.Start.Byte + len(sc.Bytes())
	}
	if begin < 0 { // the end of a file that ends with a newline, or a range of another version of the file
		begin, end = subject.Start.Byte, subject.Start.Byte
	}
	out.Code = valid(src[begin:min(end, len(src))])
	size := len(out.Code)
	out.Start = clamp(subject.Start.Byte-begin, size)
	out.End = max(out.Start, clamp(subject.End.Byte-begin, size))
	if out.End == out.Start && out.End < size && out.Code[out.End] != '\n' { // an empty range marks what comes next
		out.End++
		for out.End < size && out.Code[out.End]&0xc0 == 0x80 { // not half a character
			out.End++
		}
	}
	return out
}

// valid replaces every byte that is not part of a character, so that positions stay.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			out = append(out, '?')
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return string(out)
}

func clamp(n, size int) int { return max(0, min(n, size)) }

// header is the header of the outermost block around the range; "" outside of blocks and in JSON files.
func header(src []byte, r hcl.Range) string {
	if strings.HasSuffix(r.Filename, ".json") {
		return ""
	}
	f, _ := hclsyntax.ParseConfig(src, r.Filename, hcl.InitialPos)
	if f == nil {
		return ""
	}
	b := f.OutermostBlockAtPos(r.Start)
	if b == nil {
		return ""
	}
	out := b.Type
	for _, l := range b.Labels {
		out += ` "` + l + `"`
	}
	return out
}

package jsonrpc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is wrapped by the error of a message that is longer than the limit.
var ErrTooLarge = errors.New("message is larger than the limit")

// maxDepth is far above what OVSDB nests (about 8) and below what encoding/json takes (10,000).
const maxDepth = 1000

// Decoder splits a stream of JSON objects that follow one another without any framing, as RFC 7047 section 4 sends them.
// It holds one message in memory at a time.
type Decoder struct {
	r     *bufio.Reader
	limit int
}

// NewDecoder reads messages of up to limit bytes.
func NewDecoder(r io.Reader, limit int) *Decoder {
	return &Decoder{r: bufio.NewReader(r), limit: limit}
}

// Next returns the next message: valid JSON, an object. io.EOF says that the stream ended between two messages; after any other
// error the stream is out of step and of no more use.
func (d *Decoder) Next() (json.RawMessage, error) {
	var msg []byte
	depth, inString, escaped := 0, false, false
	for {
		c, err := d.r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && depth > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if depth == 0 {
			switch c {
			case ' ', '\t', '\r', '\n':
				continue
			case '{':
			default:
				return nil, fmt.Errorf("a message starts with %q, not with an object", c)
			}
		}
		if len(msg) == d.limit {
			return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, d.limit)
		}
		msg = append(msg, c)
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return nil, fmt.Errorf("a message is nested more than %d deep", maxDepth)
			}
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				if !json.Valid(msg) {
					return nil, errors.New("a message is not valid JSON")
				}
				return msg, nil
			}
		}
	}
}

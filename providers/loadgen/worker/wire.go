package worker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"plumb/providers/loadgen/engine"
)

// The wire form is one JSON object on each line, with one member that says which message it is: {"cancel":{}}. Client and worker are the same
// binary, so both know the same messages: a member that is not known is an error, not something to skip.
//
//	client                       worker
//	hello, open               -> hello, ready | error
//	run                       -> due (if it is to be disturbed), result
//	disturbed                    answers due
//	cancel                       stops the running trial; its result comes all the same
//	close                     -> end of the connection
//	ping                         from both sides, so that each knows that the other is there

// version of the messages. Both sides must have the same.
const version = 1

// maxLine is the length of the longest message in bytes. The longest real one is a run with a mix of sizes, of some kilobytes.
const maxLine = 1 << 20

type (
	message struct {
		Hello     *hello     `json:"hello,omitempty"`
		Open      *Open      `json:"open,omitempty"`
		Ready     *Ready     `json:"ready,omitempty"`
		Run       *run       `json:"run,omitempty"`
		Due       *struct{}  `json:"due,omitempty"`
		Disturbed *disturbed `json:"disturbed,omitempty"`
		Result    *result    `json:"result,omitempty"`
		Error     *failed    `json:"error,omitempty"`
		Cancel    *struct{}  `json:"cancel,omitempty"`
		Close     *struct{}  `json:"close,omitempty"`
		Ping      *struct{}  `json:"ping,omitempty"`
	}
	hello struct {
		Version int `json:"version"`
	}
	run struct {
		Request engine.Request `json:"request"`
		Disturb *time.Duration `json:"disturb_after,omitempty"` // nanoseconds; nil: not at all
	}
	disturbed struct {
		Error string `json:"error,omitempty"`
	}
	result struct {
		Result engine.Result `json:"result"`
		Error  string        `json:"error,omitempty"`
	}
	failed struct {
		Error string `json:"error"`
	}
)

// name is which message it is: "run". "" unless it is exactly one.
func (m message) name() string {
	v := reflect.ValueOf(m)
	found := ""
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			continue
		}
		if found != "" {
			return ""
		}
		found, _, _ = strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
	}
	return found
}

// errUnsendable says that it is the message that cannot be sent, and not the connection that cannot send.
var errUnsendable = errors.New("a message cannot be sent")

// encode makes a line of a message that the other side's decode will take.
func encode(m message) ([]byte, error) {
	if m.name() == "" {
		return nil, fmt.Errorf("%w: it is not exactly one of its kinds", errUnsendable)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnsendable, m.name(), err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnsendable, m.name(), err)
	}
	if len(b) >= maxLine {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d go on a line", errUnsendable, m.name(), len(b), maxLine-1)
	}
	return append(b, '\n'), nil
}

// decode reads one line, without or with its newline, and checks what it holds as far as that can be told without a port.
func decode(line []byte) (message, error) {
	if len(line) > maxLine {
		return message{}, fmt.Errorf("a message of %d bytes is longer than %d", len(line), maxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var m message
	if err := d.Decode(&m); err != nil {
		return message{}, fmt.Errorf("a message is not understood: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return message{}, errors.New("something follows a message on its line")
	}
	if m.name() == "" {
		return message{}, errors.New("a message is not exactly one of its kinds")
	}
	if err := m.check(); err != nil {
		return message{}, fmt.Errorf("message %s: %w", m.name(), err)
	}
	return m, nil
}

func (m message) check() error {
	switch {
	case m.Hello != nil && m.Hello.Version != version:
		return fmt.Errorf("the other side speaks version %d, this one %d", m.Hello.Version, version)
	case m.Open != nil:
		return m.Open.Check()
	case m.Run != nil:
		return m.Run.check()
	}
	return nil
}

func (r run) check() error {
	q := r.Request
	switch {
	case len(q.Streams) == 0:
		return errors.New("there is no stream")
	case q.Duration < 0 || q.Drain < 0 || r.Disturb != nil && *r.Disturb < 0:
		return errors.New("a duration is negative")
	case q.Load < 0 || q.Burst < 0:
		return errors.New("a load or burst is negative")
	}
	for i, s := range q.Streams {
		if s.From < 0 || s.From >= maxPorts || s.To < 0 || s.To >= maxPorts {
			return fmt.Errorf("stream %d goes from port %d to port %d; there are at most %d", i, s.From, s.To, maxPorts)
		}
	}
	return nil
}

// text is an error on its way; "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return cmp.Or(err.Error(), "unknown error")
}

package dpdk

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"plumb/providers/internal/marked"
)

const consoleLimit = 30 * time.Second // the console's core may be a busy one

// order types a line into the console and returns what testpmd prints, when it is at its prompt again. A line that testpmd does not understand is
// an error.
func (in *instance) order(ctx context.Context, line string) (string, error) {
	before, _, err := in.Log(ctx)
	if err != nil {
		return "", err
	}
	if err := in.say(ctx, line); err != nil {
		return "", err
	}
	return in.answer(ctx, len(before), line)
}

// answer waits for the answer to a line that was typed when the log had so many bytes.
func (in *instance) answer(ctx context.Context, from int, line string) (string, error) {
	var out string
	err := marked.Poll(ctx, consoleLimit, func() (bool, error) {
		text, exited, err := in.Log(ctx)
		if err != nil {
			return false, err
		}
		if exited {
			return false, fmt.Errorf("testpmd has ended:\n%s", lastLines(text, 8))
		}
		var done bool
		if len(text) >= from {
			out, done = parseAnswer(text[from:], line)
		}
		return done, nil
	})
	if errors.Is(err, marked.ErrLimit) {
		return "", fmt.Errorf("testpmd does not answer %q within %s", line, consoleLimit)
	}
	if err != nil {
		return "", err
	}
	if bad := regexp.MustCompile(`(?m)^(Command not found|Bad arguments|Ambiguous command|Incomplete command).*`).FindString(out); bad != "" {
		return "", fmt.Errorf("testpmd refuses %q: %s", line, bad)
	}
	return out, nil
}

// parseAnswer is what stands between the echo of a line and the next prompt. Messages of other threads may be in between.
func parseAnswer(text, line string) (string, bool) {
	i := strings.Index(text, line)
	if i < 0 {
		return "", false
	}
	text = text[i+len(line):]
	end := strings.LastIndex(text, prompt)
	if end < 0 {
		return "", false
	}
	return text[:end], true
}

// txDropped is how many frames the forwarding engine could not hand to a full port, over all ports, from what stop and "show fwd stats all" print
// ("TX-dropped: 3920256"). Not ok: it is not printed.
func txDropped(answer string) (uint64, bool) {
	if _, sum, ok := strings.Cut(answer, "Accumulated forward statistics"); ok {
		answer = sum
	}
	m := regexp.MustCompile(`TX-dropped:\s*(\d+)`).FindStringSubmatch(answer)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	return n, err == nil
}

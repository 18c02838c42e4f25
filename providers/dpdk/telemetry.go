package dpdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	"plumb/providers"
)

// telemetry is a connection to a DPDK process (doc/guides/howto/telemetry.rst): a seqpacket socket on which a command is one message and so is its
// answer, a JSON object with the command as its key.
type telemetry struct {
	conn    net.Conn
	buf     []byte
	version string // "DPDK 22.11.11"
	pid     int    // of the process
}

// answerLimit is for one answer. Whoever asks shares the machine with threads that spin.
const answerLimit = 20 * time.Second

func dialTelemetry(ctx context.Context, conn providers.Conn, prefix string) (*telemetry, error) {
	c, err := conn.Dial(ctx, "unixpacket", path.Join(dpdkDir, prefix, "dpdk_telemetry.v2"))
	if err != nil {
		return nil, fmt.Errorf("reach DPDK's telemetry: %w", err)
	}
	t := &telemetry{conn: c, buf: make([]byte, 16<<10)}
	greeting, err := t.receive(ctx)
	if err != nil {
		t.close()
		return nil, fmt.Errorf("greet DPDK's telemetry: %w", err)
	}
	var hello struct {
		Version string `json:"version"`
		PID     int    `json:"pid"`
		Max     int    `json:"max_output_len"`
	}
	if err := json.Unmarshal(greeting, &hello); err != nil {
		t.close()
		return nil, fmt.Errorf("DPDK's telemetry greets with %q: %w", greeting, err)
	}
	t.version, t.pid = hello.Version, hello.PID
	if hello.Max > len(t.buf) && hello.Max <= 1<<20 {
		t.buf = make([]byte, hello.Max)
	}
	return t, nil
}

func (t *telemetry) close() { _ = t.conn.Close() } // nothing was written that could be lost

func (t *telemetry) receive(ctx context.Context) ([]byte, error) {
	limit := time.Now().Add(answerLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(limit) {
		limit = d
	}
	if err := t.conn.SetDeadline(limit); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = t.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	n, err := t.conn.Read(t.buf)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return t.buf[:n], err
}

// ask sends a command such as "/ethdev/stats,0" and decodes its answer.
func (t *telemetry) ask(ctx context.Context, command string, into any) error {
	if err := t.conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	if _, err := t.conn.Write([]byte(command)); err != nil {
		return fmt.Errorf("ask DPDK's telemetry for %s: %w", command, err)
	}
	raw, err := t.receive(ctx)
	if err != nil {
		return fmt.Errorf("ask DPDK's telemetry for %s: %w", command, err)
	}
	if err := decodeAnswer(raw, command, into); err != nil {
		return fmt.Errorf("DPDK's telemetry answers %s: %w", command, err)
	}
	return nil
}

// decodeAnswer reads {"/ethdev/stats": VALUE}. A command that is refused has the value null.
func decodeAnswer(raw []byte, command string, into any) error {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	key, _, _ := strings.Cut(command, ",")
	value, ok := answer[key]
	if !ok || string(value) == "null" {
		return fmt.Errorf("nothing in %q", raw)
	}
	return json.Unmarshal(value, into)
}

func (t *telemetry) ports(ctx context.Context) ([]int, error) {
	var ids []int
	err := t.ask(ctx, "/ethdev/list", &ids)
	return ids, err
}

func (t *telemetry) started(ctx context.Context, port int) (bool, error) {
	var info struct {
		Started int `json:"dev_started"`
	}
	err := t.ask(ctx, "/ethdev/info,"+strconv.Itoa(port), &info)
	return info.Started == 1, err
}

// stats are the counters of a port since it was made (struct rte_eth_stats). Frames have no FCS on virtio.
type stats struct {
	Rx      uint64 `json:"ipackets"`
	Tx      uint64 `json:"opackets"`
	RxBytes uint64 `json:"ibytes"`
	TxBytes uint64 `json:"obytes"`
	Missed  uint64 `json:"imissed"`
	RxErr   uint64 `json:"ierrors"`
	TxErr   uint64 `json:"oerrors"`
	NoMbuf  uint64 `json:"rx_nombuf"`
}

func (t *telemetry) stats(ctx context.Context, port int) (stats, error) {
	var s stats
	err := t.ask(ctx, "/ethdev/stats,"+strconv.Itoa(port), &s)
	return s, err
}

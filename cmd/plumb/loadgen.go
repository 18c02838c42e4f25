package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"plumb/lang/cpuset"
	"plumb/providers"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/hand"
	"plumb/providers/loadgen/worker"
)

func loadgenCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "loadgen",
		Usage: "send frames between two ports by hand and print what came back",
		Description: `Sends from the first -port to the second, for -duration or until -frames have been sent, and counts what arrives there. It needs no
configuration and keeps no state. Every frame has a signature and a number: frames of others are counted as surplus, never as received.

A port is KIND:WHERE[,OPTION...]:

  vhost-user:/run/tg.sock,server   the virtio driver side; server: make the socket and wait for the switch (dpdkvhostuserclient)
  af_xdp:veth0@ns1                 a kernel interface by AF_XDP, here in the network namespace ns1; mode=zerocopy or mode=copy
  af_packet:eth1                   a kernel interface by AF_PACKET
  kernel:eth1                      AF_XDP where that works, else AF_PACKET

All take queues=N, rx_size=N and tx_size=N (descriptors), and frame=N (longest frame in bytes with FCS); vhost-user also mac=, hugepages and, with server,
socket_mode=0666. With one port frames come back to where they were sent: through a loop or a reflector. More ports are pairs.

  plumb loadgen -port vhost-user:/tmp/a.sock,server -port vhost-user:/tmp/b.sock,server -rate 1M -duration 10s
  plumb loadgen -port af_packet:veth0@a -port af_packet:veth1@b -size 1518 -rate 50k -bidirectional -json

Sizes include the FCS, which a virtual port does not carry; layer 1 rates add the 20 bytes of preamble and gap. An interrupt ends the stream,
waits for frames on their way, and prints what was counted.

Exit status: 0 done, 1 error, 130 interrupted.`,
		Flags:  loadgenFlags(),
		Action: func(_ context.Context, c *cli.Command) error { return e.loadgen(c) },
	}
}

func loadgenFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "port", Usage: "send from or to `PORT`; given twice, or more often for more pairs"},
		&cli.StringFlag{Name: "size", Value: "64", Usage: "`BYTES` of a frame with FCS, 64 to 9216, or a mix: simple, or a genome of RFC 6985 such as aaaaaaaddddg"},
		&cli.StringFlag{Name: "rate", Value: "max", Usage: "`RATE` in frames per second and direction, such as 250000, 500k or 14.88M; max: as fast as the ports take them"},
		&cli.DurationFlag{Name: "duration", Value: 10 * time.Second, Usage: "send for so long, such as 10s or 5m"},
		&cli.Uint64Flag{Name: "frames", Usage: "send `N` frames in each direction, instead of for a duration"},
		&cli.IntFlag{Name: "burst", Usage: "send `N` frames back to back, then pause so that -rate is kept on average; 0: evenly spaced"},
		&cli.DurationFlag{Name: "drain", Value: 2 * time.Second, Usage: "wait at most so long for frames on their way when the stream has ended"},
		&cli.BoolFlag{Name: "bidirectional", Usage: "send in both directions at once, each at -rate"},
		&cli.IntFlag{Name: "flows", Value: 1, Usage: "`N` different flows, which take turns"},
		&cli.StringFlag{Name: "headers", Value: "udp", Usage: "`KIND` of frames: l2, ipv4, ipv6, udp (IPv4), udp6, tcp (IPv4)"},
		&cli.StringFlag{Name: "vary", Usage: "`WHAT` tells flows apart: mac, ip, port; without: mac for l2, ip for ipv4 and ipv6, port for the rest"},
		&cli.StringFlag{Name: "order", Value: "incremental", Usage: "`ORDER` of the flows: incremental or random"},
		&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that a random order is made of"},
		&cli.StringFlag{Name: "vlan", Usage: "VLAN tags, outer first: `ID` or ID,ID"},
		&cli.StringFlag{Name: "src-mac", Usage: "first source `MAC`; without: the port's"},
		&cli.StringFlag{Name: "dst-mac", Usage: "first destination `MAC`; without: the other port's"},
		&cli.StringFlag{Name: "src-ip", Usage: "first source `ADDRESS`; without: 198.18.0.1 or 2001:2::1"},
		&cli.StringFlag{Name: "dst-ip", Usage: "first destination `ADDRESS`; without: 198.19.0.1 or 2001:2:0:1::1"},
		&cli.StringFlag{Name: "cpus", Usage: "`CPUS` for the threads, one each, such as 2-3; without: the last one that this process may use"},
		&cli.IntFlag{Name: "realtime", Usage: "SCHED_FIFO `PRIORITY` of the threads, 1 to 99; 0: none"},
		&cli.DurationFlag{Name: "idle", Value: 50 * time.Microsecond, Usage: "sleep so long when there is nothing to do, such as 50us; 0s polls, and leaves nothing to others on the CPU"},
		&cli.IntFlag{Name: "window", Usage: "at most `N` frames on their way in each direction; 0: no limit. With it the test is no open loop"},
		&cli.IntFlag{Name: "catch-up", Usage: "send at most `N` frames at once after a stop; 0: half the sending queue"},
		&cli.IntFlag{Name: "sample", Value: 1024, Usage: "measure the latency of one frame in `N`, a power of two"},
		jsonFlag(),
		&cli.StringFlag{Name: "worker", Hidden: true, Usage: "serve a Plumb that connects to `SOCKET`"},
	}
}

func (e *env) loadgen(c *cli.Command) error {
	if err := noArgs(c); err != nil {
		return err
	}
	if socket := c.String("worker"); socket != "" {
		soft, _, stop := e.signal(io.Discard)
		defer stop()
		return worker.Listen(soft, socket, worker.Here)
	}
	o, err := loadgenOptions(c)
	if err != nil {
		return err
	}
	if _, err := o.Request(); err != nil {
		return fmt.Errorf("%w. See %s -help", err, c.FullName())
	}
	soft, hard, stop := e.signal(io.Discard)
	defer stop()
	var watch func(hand.Totals)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	live := &liveLine{w: e.stdout, now: e.now}
	if e.tty && !c.Bool("json") {
		watch = live.show
	}
	rep, err := hand.Run(soft, hard, o, ticker.C, watch)
	live.end()
	if err != nil {
		if soft.Err() != nil {
			fmt.Fprintf(e.stderr, "plumb: %v\n", err)
			return status(exitInterrupted)
		}
		return err
	}
	if c.Bool("json") {
		err = e.encode(rep)
	} else {
		_, err = io.WriteString(e.stdout, rep.Text())
	}
	if err == nil && rep.Interrupted {
		return status(exitInterrupted)
	}
	return err
}

// liveLine is redrawn for every second of a stream.
type liveLine struct {
	w     io.Writer
	now   func() time.Time
	n     int
	last  hand.Totals
	at    time.Time
	shown bool
}

func (l *liveLine) show(t hand.Totals) {
	now := l.now()
	if l.n > 0 {
		fmt.Fprintf(l.w, "\r\x1b[K%s", hand.Live(l.n, l.last, t, max(now.Sub(l.at).Seconds(), 1e-3)))
		l.shown = true
	}
	l.n, l.last, l.at = l.n+1, t, now
}

func (l *liveLine) end() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}

// loadgenOptions reads the flags; an error names the one that is wrong.
func loadgenOptions(c *cli.Command) (hand.Options, error) {
	var errs []error
	wrong := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("-%s: %w", flag, err))
		}
	}
	atLeast := func(flag string, least int) int {
		n := c.Int(flag)
		if n < least {
			wrong(flag, fmt.Errorf("must be at least %d, not %d", least, n))
		}
		return n
	}
	duration := func(flag string, least time.Duration) time.Duration {
		d := c.Duration(flag)
		if d < least {
			wrong(flag, fmt.Errorf("must be at least %s, not %s", least, d))
		}
		return d
	}
	oneOf := func(flag string, allowed ...string) string {
		v := c.String(flag)
		for _, a := range allowed {
			if v == a {
				return v
			}
		}
		wrong(flag, fmt.Errorf("%q: want %s", v, strings.Join(allowed, ", ")))
		return v
	}
	o := hand.Options{
		Engine: engine.Config{Realtime: atLeast("realtime", 0), Idle: duration("idle", 0), Window: atLeast("window", 0), CatchUp: atLeast("catch-up", 0), Sample: atLeast("sample", 1)},
		Traffic: providers.Traffic{
			Flows: atLeast("flows", 1), Headers: oneOf("headers", "l2", "ipv4", "ipv6", "udp", "udp6", "tcp"), Vary: c.String("vary"), Order: oneOf("order", "incremental", "random"),
			Seed: c.Uint64("seed"), Bidirectional: c.Bool("bidirectional"), SrcMAC: c.String("src-mac"), DstMAC: c.String("dst-mac"), SrcIP: c.String("src-ip"), DstIP: c.String("dst-ip"),
		},
		Duration: duration("duration", time.Millisecond), Frames: c.Uint64("frames"), Burst: atLeast("burst", 0), Drain: duration("drain", 0),
	}
	if o.Engine.Realtime > 99 {
		wrong("realtime", fmt.Errorf("priorities go from 1 to 99, not %d", o.Engine.Realtime))
	}
	if s := o.Engine.Sample; s&(s-1) != 0 {
		wrong("sample", fmt.Errorf("must be a power of two, not %d", s))
	}
	if c.IsSet("frames") && c.IsSet("duration") {
		wrong("frames", errors.New("cannot be given together with -duration: either ends the stream"))
	}
	if c.IsSet("vary") {
		oneOf("vary", "mac", "ip", "port")
	}
	if c.IsSet("seed") && o.Traffic.Order != "random" {
		wrong("seed", errors.New("means something with -order random only"))
	}
	var err error
	o.Load, err = hand.ParseRate(c.String("rate"))
	wrong("rate", err)
	o.Traffic.FrameSize, o.Traffic.Sizes, err = hand.ParseSize(c.String("size"))
	wrong("size", err)
	o.Traffic.VLANs, err = hand.ParseVLANs(c.String("vlan"))
	wrong("vlan", err)
	for _, p := range c.StringSlice("port") {
		spec, err := worker.ParsePort(p)
		spec.Tagged = len(o.Traffic.VLANs) > 0 && spec.Kind != worker.VhostUser
		wrong("port", err)
		o.Ports = append(o.Ports, spec)
	}
	o.Engine.CPUs, err = cpus(c.String("cpus"))
	wrong("cpus", err)
	return o, errors.Join(errs...)
}

// cpus reads a list of CPUs; "": the last one that this process may use.
func cpus(list string) ([]int, error) {
	if list == "" {
		n, err := hand.LastCPU()
		return []int{n}, err
	}
	set, err := cpuset.Parse(list)
	if err != nil {
		return nil, err
	}
	return set.List(), nil
}

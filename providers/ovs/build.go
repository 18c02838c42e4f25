package ovs

import (
	"context"
	"regexp"
	"strings"

	"plumb/providers"
)

// build is what is installed.
type build struct {
	ovs         string // version of what /usr/sbin/ovs-vswitchd is now; "": not installed
	dpdk        string // DPDK version of that; "": built without
	alternative alternative
}

// alternative is the update-alternatives group ovs-vswitchd; the zero value where there is none.
type alternative struct {
	Auto  bool   `json:"auto,omitempty"`
	Value string `json:"value,omitempty"` // path chosen now
	DPDK  string `json:"-"`               // path of the build with DPDK; "": none
}

// withDPDK says that a build with DPDK is installed, chosen or not.
func (b *build) withDPDK() bool { return b.dpdk != "" || b.alternative.DPDK != "" }

// installed looks what is installed: two commands, kept for the run until we change the choice.
func (s *session) installed(ctx context.Context) (*build, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.build != nil {
		return s.build, nil
	}
	b := &build{}
	conn := s.host.Conn()
	res, err := conn.Run(ctx, providers.Cmd{Args: []string{daemon, "--version"}})
	if err == nil {
		b.ovs, b.dpdk = parseVersion(string(res.Stdout))
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	res, err = conn.Run(ctx, providers.Cmd{Args: []string{"update-alternatives", "--query", "ovs-vswitchd"}})
	if err == nil {
		b.alternative = parseAlternatives(string(res.Stdout))
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.build = b
	return b, nil
}

// choose makes update-alternatives point to a build, or to its own choice.
func (s *session) choose(ctx context.Context, to alternative) error {
	args := []string{"update-alternatives", "--set", "ovs-vswitchd", to.Value}
	if to.Auto {
		args = []string{"update-alternatives", "--auto", "ovs-vswitchd"}
	}
	_, err := s.host.Conn().Run(ctx, providers.Cmd{Args: args})
	s.mu.Lock()
	s.build = nil
	s.mu.Unlock()
	return err
}

// parseVersion reads "ovs-vswitchd (Open vSwitch) 3.1.0" and "DPDK 22.11.11".
func parseVersion(out string) (ovs, dpdk string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if _, v, ok := strings.Cut(line, "(Open vSwitch) "); ok {
			ovs = v
		} else if v, ok := strings.CutPrefix(line, "DPDK "); ok {
			dpdk = v
		}
	}
	return ovs, dpdk
}

// parseAlternatives reads the output of update-alternatives --query (update-alternatives(1), QUERY FORMAT).
func parseAlternatives(out string) alternative {
	var a alternative
	for line := range strings.Lines(out) {
		key, val, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Status":
			a.Auto = val == "auto"
		case "Value":
			a.Value = val
		case "Alternative":
			if strings.Contains(val, "dpdk") {
				a.DPDK = val
			}
		}
	}
	return a
}

// olderThan compares dotted versions; one that cannot be read is not older.
func olderThan(have, want string) bool {
	re := regexp.MustCompile(`\d+`)
	h, w := re.FindAllString(have, 2), re.FindAllString(want, 2)
	if len(h) < 2 || len(w) < 2 {
		return false
	}
	for i := range w {
		if a, b := strings.TrimLeft(h[i], "0"), strings.TrimLeft(w[i], "0"); a != b {
			if len(a) != len(b) {
				return len(a) < len(b)
			}
			return a < b
		}
	}
	return false
}

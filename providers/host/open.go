package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

// Schema is what a host block may contain.
func Schema() *schema.Block {
	str := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Description: what}
	}
	secret := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Sensitive: true, Description: what + " It is neither kept in the state nor shown."}
	}
	number := func(what string, least, most int64) *schema.Attribute {
		return &schema.Attribute{Type: cty.Number, Optional: true, Description: what, Validate: schema.Whole(least, most)}
	}
	length := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Description: what, Validate: func(v cty.Value) error { _, err := positive(v.AsString()); return err }}
	}
	parent := &schema.Attribute{Type: cty.String, Optional: true, Reference: schema.RefOtherHost, Description: "The host it is on: host.NAME. Unset: this machine."}
	required := func(what string, valid func(string) error) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Required: true, Description: what, Validate: func(v cty.Value) error { return valid(v.AsString()) }}
	}
	notEmpty := func(s string) error {
		if s == "" {
			return errors.New("it is empty")
		}
		return nil
	}
	return &schema.Block{
		Description: "A machine. Without a connection block it is the one that Plumb runs on.",
		Attributes: map[string]*schema.Attribute{
			"reboot": {Type: cty.String, Optional: true, Default: cty.StringVal("never"), OneOf: []string{"never", "allowed"},
				Description: "Whether an apply may reboot the host."},
			"max_parallel": number("How many steps may run on the host at a time. Unset: as many as -parallelism says.", 1, 1000),
		},
		Blocks: map[string]*schema.NestedBlock{
			"ssh": {Block: schema.Block{Description: "Reached by SSH: one connection, on which everything runs side by side. What is left out comes from ssh_config(5): ~/.ssh/config, then /etc/ssh/ssh_config. Host keys are always checked.", Attributes: map[string]*schema.Attribute{
				"address":     required("Name, IP address, or a Host of ssh_config.", notEmpty),
				"user":        str("User to log in as. Unset: ssh_config's, else the one that runs Plumb."),
				"port":        number("TCP port. Unset: ssh_config's, else 22.", 1, 65535),
				"key":         str("Path of a private key, tried before all others. Unset: keys of the agent, then those that ssh_config names, then ~/.ssh/id_ed25519, id_ecdsa and id_rsa."),
				"passphrase":  secret("Opens keys that have one."),
				"password":    secret("Password, or answer to a question for it. Better: a key."),
				"known_hosts": {Type: cty.List(cty.String), Optional: true, Description: "Files with the keys of hosts. Unset: ssh_config's UserKnownHostsFile and GlobalKnownHostsFile, else ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts."},
				"config":      str("Path of the ssh_config to read instead of the user's and the system's; \"none\" reads none."),
				"jump":        {Type: cty.String, Optional: true, Reference: schema.RefOtherHost, Description: "The host to go through: host.NAME. ssh_config's ProxyJump is then not looked at."},
				"sudo": {Type: cty.String, Optional: true, Default: cty.StringVal("auto"), OneOf: []string{"auto", "never"},
					Description: "auto: commands become root by sudo -n where the user is not root. never: they run as the user."},
				"connect_timeout": length("How long connecting and logging in may take, such as 20s. Unset: ssh_config's ConnectTimeout, else 20s."),
				"keep_alive":      length("How often the host is asked whether it is still there; when it has not answered three times, the connection is given up. Unset: ssh_config's ServerAliveInterval, else 15s."),
				"max_sessions":    number("Sessions at a time on the connection. Unset: 8, and fewer where the server refuses (MaxSessions of sshd_config(5), 10 by default).", 1, 1000),
			}}},
			"netns": {Block: schema.Block{Description: "A network namespace of another host.", Attributes: map[string]*schema.Attribute{
				"name":   required("Name of the namespace.", transport.ValidNetns),
				"parent": parent,
			}}},
			"container": {Block: schema.Block{Description: "A container of another host. Not supported by this version.", Attributes: map[string]*schema.Attribute{
				"name":   required("Name or id of the container.", notEmpty),
				"engine": str("docker or podman."),
				"parent": parent,
			}}},
		},
	}
}

// positive reads a duration that is longer than nothing.
func positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a length of time such as 20s", s)
	}
	return d, nil
}

// Connect makes the connection of a host block. Values are of Schema's implied type, or null: this machine. others gives the hosts that it leads
// through; they are not closed with it.
type Connect func(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Conn, error)

// Connected is Connect for real machines. A machine that does not answer is an error that wraps providers.ErrUnreachable.
func Connected(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Conn, error) {
	if config.IsNull() {
		return transport.NewLocal(name), nil
	}
	var ways []string
	for _, way := range []string{"ssh", "netns", "container"} {
		if !config.GetAttr(way).IsNull() {
			ways = append(ways, way)
		}
	}
	switch {
	case len(ways) > 1:
		return nil, fmt.Errorf("it has the blocks %s and %s: a host is reached in one way", ways[0], ways[1])
	case len(ways) == 0:
		return transport.NewLocal(name), nil
	}
	block := config.GetAttr(ways[0])
	switch ways[0] {
	case "ssh":
		return openSSH(ctx, name, block, others)
	case "netns":
		parent, err := parentOf(ctx, name, attr.Text(block, "parent"), others)
		if err != nil {
			return nil, err
		}
		conn := transport.NewNetns(name, attr.Text(block, "name"), parent)
		_, err = conn.Run(ctx, providers.Cmd{Args: []string{"true"}})
		return conn, err
	}
	return nil, errors.New("the block container is not supported by this version")
}

// parentOf is the connection of the host that another one is on.
func parentOf(ctx context.Context, name, parent string, others providers.Hosts) (providers.Conn, error) {
	if parent == "" {
		return transport.NewLocal(name), nil
	}
	h, err := others(ctx, parent)
	if err != nil {
		return nil, fmt.Errorf("host %s is reached through host %s: %w", name, parent, err)
	}
	return hostkit.Plain(h.Conn()), nil
}

func openSSH(ctx context.Context, name string, b cty.Value, others providers.Hosts) (providers.Conn, error) {
	c := transport.SSHConfig{
		Address: attr.Text(b, "address"), User: attr.Text(b, "user"), Port: int(attr.Number(b, "port", 0)), Key: attr.Text(b, "key"),
		Passphrase: attr.Text(b, "passphrase"), Password: attr.Text(b, "password"), Config: attr.Text(b, "config"), Sessions: int(attr.Number(b, "max_sessions", 0)),
	}
	if attr.Text(b, "sudo") == "never" {
		c.Sudo = transport.SudoNever
	}
	if v := b.GetAttr("known_hosts"); !v.IsNull() {
		c.KnownHosts = []string{}
		for _, e := range v.AsValueSlice() {
			c.KnownHosts = append(c.KnownHosts, e.AsString())
		}
	}
	for what, to := range map[string]*time.Duration{"connect_timeout": &c.Timeout, "keep_alive": &c.KeepAlive} {
		if s := attr.Text(b, what); s != "" {
			d, err := positive(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			*to = d
		}
	}
	var dial transport.DialFunc
	if jump := attr.Text(b, "jump"); jump != "" {
		h, err := others(ctx, jump)
		if err != nil {
			return nil, fmt.Errorf("host %s is reached through host %s: %w", name, jump, err)
		}
		dial = hostkit.Plain(h.Conn()).Dial
	}
	conn := transport.NewSSH(name, c, dial)
	if err := conn.Open(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Opener makes a Set's OpenHost. The connection is opened at once; facts are gathered when first asked for.
func Opener(connect Connect) func(context.Context, string, cty.Value, providers.Hosts) (providers.Host, error) {
	return func(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Host, error) {
		conn, err := connect(ctx, name, config, others)
		if err != nil {
			return nil, err
		}
		return hostkit.New(name, conn, Gather), nil
	}
}

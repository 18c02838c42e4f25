package host

import (
	"context"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

// Schema is what a host block may contain. The blocks that name a way to another machine are described and refused: this version manages the
// machine it runs on.
func Schema() *schema.Block {
	str := func(required bool, what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Required: required, Optional: !required, Description: what}
	}
	number := func(what string, least, most int64) *schema.Attribute {
		return &schema.Attribute{Type: cty.Number, Optional: true, Description: what, Validate: schema.Whole(least, most)}
	}
	const later = " Not supported by this version: only this machine is."
	return &schema.Block{
		Description: "A machine. Without a connection block it is the one that Plumb runs on.",
		Attributes: map[string]*schema.Attribute{
			"reboot": {Type: cty.String, Optional: true, Default: cty.StringVal("never"), OneOf: []string{"never", "allowed"},
				Description: "Whether an apply may reboot the host."},
			"max_parallel": number("How many steps may run on the host at a time. Unset: as many as -parallelism says.", 1, 1000),
		},
		Blocks: map[string]*schema.NestedBlock{
			"ssh": {Block: schema.Block{Description: "Reached by SSH." + later, Attributes: map[string]*schema.Attribute{
				"address": str(true, "Name, IP address, or a Host of ssh_config."),
				"user":    str(false, "User to log in as."),
				"port":    number("TCP port.", 1, 65535),
				"key":     str(false, "Path of the private key. Unset: the agent, then ssh_config."),
				"jump":    {Type: cty.String, Optional: true, Reference: schema.RefOtherHost, Description: "The host to go through: host.NAME."},
			}}},
			"netns": {Block: schema.Block{Description: "A network namespace of another host." + later, Attributes: map[string]*schema.Attribute{
				"name":   str(true, "Name of the namespace."),
				"parent": {Type: cty.String, Optional: true, Reference: schema.RefOtherHost, Description: "The host it is on: host.NAME. Unset: this machine."},
			}}},
			"container": {Block: schema.Block{Description: "A container of another host." + later, Attributes: map[string]*schema.Attribute{
				"name":   str(true, "Name or id of the container."),
				"engine": str(false, "docker or podman."),
				"parent": {Type: cty.String, Optional: true, Reference: schema.RefOtherHost, Description: "The host it is on: host.NAME. Unset: this machine."},
			}}},
		},
	}
}

// Connect makes the connection of a host block. Values are of Schema's implied type, or null: this machine. others gives the hosts that it leads
// through; they are not closed with it.
type Connect func(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Conn, error)

// Connected is Connect for real machines.
func Connected(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Conn, error) {
	if !config.IsNull() {
		for _, way := range []string{"ssh", "netns", "container"} {
			if v := config.GetAttr(way); !v.IsKnown() || !v.IsNull() {
				return nil, fmt.Errorf("the block %s is not supported by this version, which manages the machine that it runs on. Leave the block out for that machine", way)
			}
		}
	}
	return transport.NewLocal(name), nil
}

// Opener makes a Set's OpenHost. The connection is opened at once; facts are gathered when first asked for.
func Opener(connect Connect) func(context.Context, string, cty.Value, providers.Hosts) (providers.Host, error) {
	return func(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Host, error) {
		conn, err := connect(ctx, name, config, others)
		if err != nil {
			return nil, fmt.Errorf("open host %s: %w", name, err)
		}
		return hostkit.New(name, conn, Gather), nil
	}
}

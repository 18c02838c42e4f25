package pathend

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

func TestAssign(t *testing.T) {
	hop := func(socket string) providers.Subject {
		v := cty.NullVal(cty.String)
		if socket != "" {
			v = cty.StringVal(socket)
		}
		return providers.Subject{Value: cty.ObjectVal(map[string]cty.Value{"vhost_server_path": v})}
	}
	other := providers.Subject{Value: cty.ObjectVal(map[string]cty.Value{"cores": cty.StringVal("1")})}
	nothing := providers.Subject{Value: cty.NullVal(cty.DynamicPseudoType)}
	for name, c := range map[string]struct {
		sockets  []string
		path     []providers.Subject
		from, to int
	}{
		"in the order of the ports": {[]string{"/a", "/b"}, []providers.Subject{hop("/a"), other, hop("/b")}, 0, 1},
		"the other way round":       {[]string{"/a", "/b"}, []providers.Subject{hop("/b"), hop("/a")}, 1, 0},
		"only the first hop tells":  {[]string{"/a", "/b"}, []providers.Subject{hop("/b"), other}, 1, 0},
		"only the last hop tells":   {[]string{"/a", "/b"}, []providers.Subject{hop("/x"), hop("/a")}, 1, 0},
		"no hop tells":              {[]string{"/a", "/b"}, []providers.Subject{other, nothing}, 0, 1},
		"kernel interfaces":         {[]string{"", ""}, []providers.Subject{hop(""), hop("")}, 0, 1},
		"no path":                   {[]string{"/a", "/b"}, nil, 0, 1},
		"there and back":            {[]string{"/a", "/b"}, []providers.Subject{hop("/b"), other, hop("/b")}, 1, 1},
		"one port":                  {[]string{"/a"}, []providers.Subject{hop("/a")}, 0, 0},
	} {
		if from, to := Assign(c.sockets, c.path); from != c.from || to != c.to {
			t.Errorf("%s: from %d to %d; want %d, %d", name, from, to, c.from, c.to)
		}
	}
}

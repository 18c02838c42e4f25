package openflow

import (
	"strings"
	"testing"
)

func TestCheckNames(t *testing.T) {
	p := NewParser(nil)
	for _, line := range []string{
		"in_port=1 actions=output:2",
		"table=1,priority=10,cookie=0x1,idle_timeout=3,tcp,nw_src=10.0.0.1,tp_dst=80,dl_vlan=5,reg3=1 actions=drop",
		"tun_erspan_ver=2,nsh_np=1,something_from_the_future=1 actions=drop",
		"actions=output:in_prt",
	} {
		if err := p.CheckNames(line); err != nil {
			t.Error(err)
		}
	}
	for line, want := range map[string]string{
		"in_prt=1 actions=drop":                  `Did you mean "in_port"?`,
		"ip,nw_scr=10.0.0.1 actions=drop":        `Did you mean "nw_src"?`,
		"priorty=7,in_port=1 actions=output:2":   `Did you mean "priority"?`,
		"table=0, in_port=1,dl_vlann=2 actions=": `Did you mean "dl_vlan"?`,
	} {
		if err := p.CheckNames(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %s", line, err, want)
		}
	}
}

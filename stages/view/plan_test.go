package view

import (
	"strings"
	"testing"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/plan"
)

const (
	portBefore = `{"name":"p","mtu":1500,"mode":"client","key":"hunter2","ofport":1,"tags":{"a":"1","b":"2"},"any":{"value":"x","type":"string"},
		"flows":["priority=1,in_port=1,actions=output:2","priority=2,in_port=2,actions=output:1","priority=0,actions=drop"],
		"qos":{"match":"all","rate":1},"rule":[{"match":"a","rate":1},{"match":"b","rate":2}],"queue":{"q0":{"match":"a","rate":1},"q1":{"match":"b","rate":2}}}`
	portAfter = `{"name":"p","mtu":9000,"mode":"client","key":"hunter3","ofport":null,"tags":{"a":"1","b":"3","c":"4"},"any":{"value":["x",1],"type":["tuple",["string","number"]]},
		"flows":["priority=1,in_port=1,actions=output:2","priority=5,in_port=3,actions=output:1","priority=2,in_port=2,actions=output:1","priority=0,actions=drop"],
		"qos":null,"rule":[{"match":"a","rate":7},{"match":"b","rate":2},{"match":"c","rate":3}],"queue":{"q0":{"match":"a","rate":1},"q 2":{"match":"b","rate":2}}}`
)

// everything is a plan with each action, each reason that has words of its own, drift, outputs and reads.
func everything(t *testing.T) *plan.Plan {
	at := func(s string) addrs.Instance { return instance(t, s) }
	key := []plan.Path{{"key"}}
	bare := raw(`{"name":"p"}`)
	return &plan.Plan{
		Drift: []plan.Change{
			{Addr: at("port.gone"), Action: plan.Delete, Before: raw(portBefore)},
			{Addr: at("port.moved"), Action: plan.Update, Before: raw(portBefore), After: raw(strings.Replace(portBefore, "1500", "1400", 1)), Changed: []plan.AttrChange{{Path: plan.Path{"mtu"}, Cost: schema.PortReset}}},
		},
		Changes: []plan.Change{
			{Addr: at("port.new"), Host: "dut", Action: plan.Create, After: raw(portAfter), Unknown: []plan.Path{{"ofport"}}, Sensitive: key},
			{Addr: at("port.changed"), Host: "dut", Action: plan.Update, Before: raw(portBefore), After: raw(portAfter), Unknown: []plan.Path{{"ofport"}}, Sensitive: key,
				Cost: schema.PortReset, Effects: []string{"port reset on dut"},
				Changed: []plan.AttrChange{{Path: plan.Path{"mtu"}, Cost: schema.PortReset}, {Path: plan.Path{"ofport"}}, {Path: plan.Path{"tags", "b"}}, {Path: plan.Path{"rule", "0", "rate"}, Cost: schema.ServiceRestart}}},
			{Addr: at("port.other"), Host: "dut", Action: plan.Replace, Reason: plan.CannotUpdate, Before: raw(`{"name":"old","mtu":1500}`), After: raw(`{"name":"new","mtu":1500}`),
				Cost: schema.Replace, Changed: []plan.AttrChange{{Path: plan.Path{"name"}, Cost: schema.Replace}}},
			{Addr: at("port.first"), Host: "gen", Action: plan.Replace, Reason: plan.Requested, CreateBeforeDestroy: true, Before: bare, After: bare},
			{Addr: at("port.old"), Host: "dut", Action: plan.Delete, Reason: plan.NotInConfig, Before: raw(portBefore), Sensitive: key},
			{Addr: at("port.n[2]"), Host: "dut", Action: plan.Delete, Reason: plan.CountIndex, Before: bare},
			{Addr: at(`port.k["x"]`), Host: "dut", Action: plan.Delete, Reason: plan.EachKey, Before: bare},
			{Addr: at("module.m.port.p"), Host: "dut", Action: plan.Delete, Reason: plan.NoModule, Before: bare},
			{Addr: at("port.lost"), Host: "dut", Action: plan.Reapply, Reason: plan.LostBy, LostBy: "port.changed", LostWhy: "a restart loses flows", Before: bare, After: bare},
			{Addr: at("port.doubt"), Host: "dut", Action: plan.Update, Reason: plan.WasInDoubt, Before: bare, After: bare},
			{Addr: at("port.forgotten"), Host: "dut", Action: plan.Forget, Before: bare},
			{Addr: at("port.same"), Host: "dut", Action: plan.NoOp, Before: bare, After: bare},
			{Addr: at("data.host_facts.f"), Action: plan.Read, Reason: plan.UnknownConfig, After: raw(`{"answer":null,"query":"q"}`), Unknown: []plan.Path{{"answer"}}},
		},
		Outputs: map[string]plan.OutputChange{
			"new":     {Action: plan.Create, After: raw(`{"a":[1,true,null],"b c":"${x} \"y\""}`)},
			"changed": {Action: plan.Update, Before: raw(`1.50`), After: raw(`2`)}, "later": {Action: plan.Update, Before: raw(`"x"`), Unknown: true},
			"secret": {Action: plan.Create, After: raw(`"hunter2"`), Sensitive: true}, "old": {Action: plan.Delete, Before: raw(`"x"`)}, "same": {Action: plan.NoOp, After: raw(`1`)},
		},
		Benchmarks: []string{"benchmark.b"},
		Reads:      map[string]providers.Reads{"dut": {Commands: 1, Files: 2, OVSDB: 3, Unixctl: 0}},
	}
}

func TestPlan(t *testing.T) {
	p := everything(t)
	for name, o := range map[string]PlanOptions{
		"plan": {Catalog: catalog()}, "plan-verbose": {Catalog: catalog(), Verbose: true}, "plan-concise": {Catalog: catalog(), Concise: true},
		"plan-color": {Catalog: catalog(), Style: Style{Color: true}}, "plan-no-catalog": {},
	} {
		t.Run(name, func(t *testing.T) {
			text := Plan(p, o)
			golden(t, name, text)
			if strings.Contains(text, "hunter") && name != "plan-no-catalog" {
				t.Error("a secret is shown")
			}
		})
	}
}

func TestPlanOfOutputsOnly(t *testing.T) {
	p := &plan.Plan{
		Changes: []plan.Change{{Addr: instance(t, "port.same"), Action: plan.NoOp}},
		Outputs: map[string]plan.OutputChange{"a": {Action: plan.Update, Before: raw(`1`), After: raw(`2`)}},
	}
	if got, want := Plan(p, PlanOptions{}), "Changes to outputs:\n  ~ a = 1 -> 2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Outputs = nil
	if got, want := Plan(p, PlanOptions{}), "No changes. The testbed is as the configuration says.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSummary(t *testing.T) {
	for want, changes := range map[string][]plan.Change{
		"Plan: 0 to add, 0 to change, 0 to destroy.": nil,
		"Plan: 1 to add, 0 to change, 1 to destroy.": {{Action: plan.Replace}},
		"Plan: 0 to add, 3 to change (1 port_reset, 1 restarts ovs-vswitchd on dut), 0 to destroy.": {
			{Action: plan.Update}, {Action: plan.Update, Cost: schema.PortReset}, {Action: plan.Update, Cost: schema.ServiceRestart, Effects: []string{"restarts ovs-vswitchd on dut"}},
		},
		"Plan: 0 to add, 0 to change, 0 to destroy, 1 to apply again, 1 to read, 1 to forget.": {{Action: plan.Reapply}, {Action: plan.Read}, {Action: plan.Forget}},
	} {
		if got := Summary(&plan.Plan{Changes: changes}, Style{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestListIsAlignedByWhatIsCommon(t *testing.T) {
	list := func(s string) (out []any) {
		for _, r := range s {
			out = append(out, string(r))
		}
		return out
	}
	for _, tc := range []struct {
		a, b string
		want int // elements that stay
	}{{"", "", 0}, {"abc", "abc", 3}, {"abc", "axbc", 3}, {"abcd", "bd", 2}, {"abc", "xyz", 0}, {"abcbdab", "bdcaba", 4}} {
		pairs := lcs(list(tc.a), list(tc.b))
		if len(pairs) != tc.want {
			t.Errorf("%s, %s: %d are common, want %d", tc.a, tc.b, len(pairs), tc.want)
		}
		last := [2]int{-1, -1}
		for _, p := range pairs {
			if p[0] <= last[0] || p[1] <= last[1] || tc.a[p[0]] != tc.b[p[1]] {
				t.Errorf("%s, %s: %v is no common subsequence", tc.a, tc.b, pairs)
			}
			last = p
		}
	}
}

// Package ovs manages Open vSwitch: the switch with its DPDK start-up (ovs_switch, a setting), bridges, ports and OpenFlow
// flows (ovs_bridge, ovs_port, ovs_flows, objects). It also counts frames at ports and watches PMD threads.
//
// All resources of one host share a session: one OVSDB connection, and one snapshot of the database that is taken by one
// transaction and is good until something of ours changes it. Bridges and ports carry their owner in external_ids.
//
// Start reading at Resources, then session.
package ovs

import "plumb/providers"

// Resources lists the resource types of this package.
func Resources() []providers.Resource {
	return []providers.Resource{switchType{}, bridgeType{}, portType{}, flowsType{}}
}

// Files and folders of a Debian or Ubuntu installation, and of a build with the same prefix.
const (
	runDir     = "/var/run/openvswitch"
	dbSocket   = runDir + "/db.sock"
	dbFile     = "/etc/openvswitch/conf.db"
	dbSchema   = "/usr/share/openvswitch/vswitch.ovsschema"
	logDir     = "/var/log/openvswitch"
	daemonLog  = logDir + "/ovs-vswitchd.log"
	daemon     = "/usr/sbin/ovs-vswitchd"
	serverPid  = runDir + "/ovsdb-server.pid"
	daemonPid  = runDir + "/ovs-vswitchd.pid"
	vhostDir   = "/run/plumb/vhost"
	keyTestbed = "plumb-testbed"
	keyAddress = "plumb-address"
	keyRestart = "plumb-restart-pending"
)

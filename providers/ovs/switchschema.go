package ovs

import (
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// The options follow ovs-vswitchd.conf.db(5), table Open_vSwitch, column other_config.

const (
	live    = schema.Live
	pmd     = schema.PortReset // PMD threads are rebuilt
	restart = schema.ServiceRestart
)

// startOptions are read once, when ovs-vswitchd starts DPDK.
func startOptions() []option {
	return []option{
		{attr: "init", key: "dpdk-init", cost: restart, oneOf: []string{"true", "try"}, desc: "true: ovs-vswitchd ends when DPDK cannot start. try: it goes on without."},
		{attr: "lcores", key: "dpdk-lcore-mask", form: cpuForm, cost: restart, desc: "CPUs for the threads that do not poll, as a list: 2,16."},
		{attr: "socket_mem", key: "dpdk-socket-mem", form: listForm, max: 1 << 24, cost: restart, desc: "MB of hugepages to take at start, by NUMA node."},
		{attr: "alloc_mem", key: "dpdk-alloc-mem", form: intForm, min: 1, max: 1 << 24, cost: restart, desc: "MB of hugepages to take at start from any node. Cannot stand with socket_mem."},
		{attr: "socket_limit", key: "dpdk-socket-limit", form: listForm, max: 1 << 24, cost: restart, desc: "Most MB of hugepages by NUMA node; 0 is no limit."},
		{attr: "hugepage_dir", key: "dpdk-hugepage-dir", cost: restart, desc: "Where hugetlbfs is mounted."},
		{attr: "extra", key: "dpdk-extra", cost: restart, desc: "More EAL arguments, such as --no-pci or -a 0000:01:00.0."},
		{attr: "probe_at_init", key: "dpdk-probe-at-init", form: boolForm, cost: restart, since: "OVS 4.0", desc: "Probe all devices at start."},
		{attr: "vhost_sock_dir", key: "vhost-sock-dir", cost: restart, desc: "Folder of server-mode vhost-user sockets, relative to the run folder."},
		{attr: "vhost_iommu_support", key: "vhost-iommu-support", form: boolForm, cost: restart, desc: "Let guests use a virtual IOMMU with vhost-user."},
		{attr: "vhost_postcopy_support", key: "vhost-postcopy-support", form: boolForm, cost: restart, desc: "Post-copy live migration for vhost-user."},
		{attr: "per_port_memory", key: "per-port-memory", form: boolForm, cost: restart, desc: "A pool of packet buffers for each port rather than a shared one."},
		{attr: "shared_mempool_config", key: "shared-mempool-config", form: stringList, cost: restart, since: "OVS 3.0", desc: "Sizes of shared pools: MTU or MTU:NODE."},
		{attr: "userspace_tso", key: "userspace-tso-enable", form: boolForm, cost: restart, desc: "TCP segmentation offload in the userspace datapath. VMs connect anew."},
	}
}

// pmdOptions are those of the polling threads, which take effect at once.
func pmdOptions() []option {
	return []option{
		{attr: "pmd_cores", key: "pmd-cpu-mask", form: cpuForm, cost: pmd, desc: "CPUs that poll, as a list: 1,15."},
		{attr: "pmd_rxq_assign", key: "pmd-rxq-assign", cost: pmd, oneOf: []string{"cycles", "roundrobin", "group"}, desc: "How receive queues are spread over PMD threads."},
		{attr: "pmd_rxq_isolate", key: "pmd-rxq-isolate", form: boolForm, cost: pmd, since: "OVS 2.16", desc: "Whether a CPU with a pinned queue takes no other. false needs pmd_rxq_assign = \"group\"."},
		{attr: "pmd_auto_lb", key: "pmd-auto-lb", form: boolForm, cost: live, desc: "Move queues between PMD threads by load. Off while measuring."},
		{attr: "pmd_auto_lb_interval", key: "pmd-auto-lb-rebal-interval", form: intForm, max: 20000, cost: live, desc: "Minutes between two moves."},
		{attr: "pmd_auto_lb_load_threshold", key: "pmd-auto-lb-load-threshold", form: intForm, max: 100, cost: live, since: "OVS 2.15", desc: "Percent of load from which a PMD thread is overloaded."},
		{attr: "pmd_auto_lb_improvement_threshold", key: "pmd-auto-lb-improvement-threshold", form: intForm, max: 100, cost: live, since: "OVS 2.15", desc: "Percent of better balance that is worth a move."},
		{attr: "pmd_sleep_max", key: "pmd-sleep-max", cost: live, since: "OVS 3.2", desc: "Most microseconds an idle PMD thread sleeps: \"50\", or \"N,core:N\". 0 while measuring."},
		{attr: "pmd_maxsleep", key: "pmd-maxsleep", form: intForm, max: 10000, cost: live, since: "OVS 3.1", desc: "As pmd_sleep_max, under the name it has in OVS 3.1."},
		{attr: "pmd_perf_metrics", key: "pmd-perf-metrics", form: boolForm, cost: live, desc: "Detailed counters; costs about one percent."},
		{attr: "emc_insert_inv_prob", key: "emc-insert-inv-prob", form: intForm, max: 1<<32 - 1, cost: live, desc: "One flow in so many goes into the exact-match cache; 0: none, 1: all."},
		{attr: "smc_enable", key: "smc-enable", form: boolForm, cost: live, desc: "The signature-match cache."},
		{attr: "tx_flush_interval", key: "tx-flush-interval", form: intForm, max: 1000000, cost: live, desc: "Microseconds that frames may wait to be sent as a batch."},
	}
}

// datapathOptions hold for every datapath.
func datapathOptions() []option {
	return []option{
		{attr: "hw_offload", key: "hw-offload", form: boolForm, cost: restart, desc: "Flow offload to hardware."},
		{attr: "hw_offload_priority", key: "hw-offload-priority", form: stringList, cost: restart, since: "OVS 4.0", desc: "Offload providers in order."},
		{attr: "n_offload_threads", key: "n-offload-threads", form: intForm, min: 1, max: 10, cost: restart, desc: "Threads that offload; needs hw_offload."},
		{attr: "offload_rebalance", key: "offload-rebalance", form: boolForm, cost: restart, desc: "Move offloaded flows by rate (experimental)."},
		{attr: "tc_policy", key: "tc-policy", cost: restart, oneOf: []string{"none", "skip_sw", "skip_hw"}, desc: "Where tc puts flows."},
		{attr: "flow_limit", key: "flow-limit", form: intForm, max: 1<<32 - 1, cost: live, desc: "Most flows in the datapath; more than a test has, or flows are evicted in the middle."},
		{attr: "max_idle", key: "max-idle", form: intForm, min: 1, max: 1<<32 - 1, cost: live, desc: "Milliseconds after which an idle datapath flow goes."},
		{attr: "max_revalidator", key: "max-revalidator", form: intForm, min: 1, max: 1<<32 - 1, cost: live, desc: "Most milliseconds between two revalidations."},
		{attr: "min_revalidate_pps", key: "min-revalidate-pps", form: intForm, max: 1<<32 - 1, cost: live, desc: "Frames per second from which a flow is worth revalidating."},
		{attr: "n_handler_threads", key: "n-handler-threads", form: intForm, min: 1, max: 4096, cost: live, desc: "Threads for upcalls."},
		{attr: "n_revalidator_threads", key: "n-revalidator-threads", form: intForm, min: 1, max: 4096, cost: live, desc: "Threads for revalidation."},
		{attr: "stats_update_interval", key: "stats-update-interval", form: intForm, min: 5000, max: 1<<31 - 1, cost: live, desc: "Milliseconds between two updates of statistics in the database."},
		{attr: "vlan_limit", key: "vlan-limit", form: intForm, max: 65535, cost: live, desc: "VLAN headers that flows can match; 0 is no limit."},
		{attr: "flow_restore_wait", key: "flow-restore-wait", form: boolForm, cost: live, desc: "Forward nothing until it is unset: for upgrades."},
		{attr: "explicit_sampled_drops", key: "explicit-sampled-drops", form: boolForm, cost: live, since: "OVS 3.4", desc: "Explicit drop actions for sampled drops."},
		{attr: "bundle_idle_timeout", key: "bundle-idle-timeout", form: intForm, min: 1, max: 65535, cost: live, desc: "Seconds after which an idle OpenFlow bundle is dropped."},
		{attr: "max_offloaded_stats_delay", key: "offloaded-stats-delay", form: intForm, max: 1<<31 - 1, cost: live, since: "OVS 3.3", desc: "Milliseconds that statistics of offloaded flows may be late."},
	}
}

func switchSchema() *schema.Resource {
	dpdk := schema.NestedBlock{Nesting: schema.Single, Block: schema.Block{
		Description: "Starts DPDK inside ovs-vswitchd. The build with DPDK is chosen where the distribution has alternatives.",
		Attributes: map[string]*schema.Attribute{
			"hugepage_size": {Type: cty.String, Optional: true, OneOf: []string{"2M", "1G"}, Cost: live,
				Description: "Page size that the plan counts socket_mem and alloc_mem in. Unset: whichever the host provides, the larger of two; 2M where it provides none yet."},
		},
	}}
	for _, o := range append(startOptions(), pmdOptions()...) {
		dpdk.Attributes[o.attr] = o.attribute()
	}
	dpdk.Attributes["init"].Default = cty.StringVal("true")
	dpdk.Attributes["share_cores"] = &schema.Attribute{Type: cty.Bool, Optional: true, Default: cty.False,
		Description: "Accept that pmd_cores are shared with other threads that spin, are hyperthreads of cores that others poll on, or are not isolated where the host isolates cores. Rates then depend on what else runs there."}
	attrs := map[string]*schema.Attribute{
		"other_config": {Type: cty.Map(cty.String), Optional: true, Cost: restart,
			Description: "Keys of other_config that have no attribute here. A key that has one is an error."},
		"running": {Type: cty.Bool, Computed: true, Cost: restart, Description: "Whether ovsdb-server and ovs-vswitchd run."},
		"dpdk_initialized": {Type: cty.Bool, Computed: true, Cost: restart,
			Description: "Whether DPDK runs inside ovs-vswitchd."},
		"ovs_version":    {Type: cty.String, Computed: true, Volatile: true, Description: "Version of ovs-vswitchd as it runs."},
		"dpdk_version":   {Type: cty.String, Computed: true, Volatile: true, Description: "DPDK that ovs-vswitchd was built with; empty for none."},
		"datapath_types": {Type: cty.List(cty.String), Computed: true, Volatile: true, Description: "Datapath types that bridges can have."},
		"iface_types":    {Type: cty.List(cty.String), Computed: true, Volatile: true, Description: "Interface types that ports can have."},
	}
	for _, o := range datapathOptions() {
		attrs[o.attr] = o.attribute()
	}
	return &schema.Resource{
		Type:        "ovs_switch",
		Description: "Open vSwitch on a host: that it runs, with which build, and its settings. Destroy puts back what was found: build, settings, running or not.",
		Setting:     true,
		After:       []string{"host_hugepages"},
		Example: `resource "ovs_switch" "dut" {
  dpdk {
    socket_mem = [512]
    pmd_cores  = "1"
    extra      = "--no-pci"
  }
}`,
		Block: schema.Block{Attributes: attrs, Blocks: map[string]*schema.NestedBlock{"dpdk": &dpdk}},
	}
}

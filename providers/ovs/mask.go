package ovs

import "plumb/lang/cpuset"

func parseCPUs(list string) ([]int, error) {
	s, err := cpuset.Parse(list)
	return s.List(), err
}

func formatCPUs(cpus []int) string {
	s, err := cpuset.Of(cpus...)
	if err != nil {
		return ""
	}
	return s.String()
}

// cpuMask writes the CPUs as pmd-cpu-mask and dpdk-lcore-mask have them.
func cpuMask(cpus []int) string {
	s, err := cpuset.Of(cpus...)
	if err != nil {
		return ""
	}
	return s.Mask()
}

func maskCPUs(mask string) ([]int, error) {
	s, err := cpuset.ParseMask(mask)
	return s.List(), err
}

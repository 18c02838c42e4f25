// Package boot holds the settings that a host reads when it boots, and the reboot itself.
//
// Sources: Documentation/admin-guide/kernel-parameters.rst of Linux, the manual of GRUB ("Simple configuration handling"), grubby(8), systemctl(1).
//
// Start reading at settingType, which all types here are made of.
package boot

import (
	"plumb/providers"
)

// Resources are the resource types of this package.
func Resources() []providers.Resource { return []providers.Resource{kernelArgs(), cpuIsolation()} }

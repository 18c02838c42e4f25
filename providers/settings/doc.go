// Package settings is what else of a host a testbed changes and puts back: kernel parameters, modules, services, packages, files, mounts, where
// interrupts go, how CPUs save power, and commands of the user's own.
//
// Every type is a setting: Prepare records what is found before the first change, a destroy puts that back, not a default. What the instances of one type
// read of a host is fetched once for all of them where that can be told beforehand (cached), and gathered into few round trips where it cannot (batch).
// Values of the configuration reach the host as arguments, standard input or file contents, never as a text that something parses as a command.
package settings

import "plumb/providers"

// Resources are the types of the package.
func Resources() []providers.Resource {
	return []providers.Resource{Sysctl{}, Module{}, Service{}, File{}, Package{}, Mount{}, IRQAffinity{}, CPUPower{}, Command{}}
}

// Package dpdk runs DPDK's testpmd: as the network function that forwards inside a testbed (dpdk_testpmd, an object), and as a traffic
// generator (testpmd).
//
// A testpmd of ours is a supervised process with a folder of its own below /run/plumb and our mark in its environment: it outlives Plumb and is found again
// by both. It is told what to do through its console (the folder's stdin and log) and counts through DPDK's telemetry socket.
//
// Start reading at instance (process.go); what is started is a spec (spec.go).
package dpdk

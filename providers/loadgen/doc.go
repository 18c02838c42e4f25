// Package loadgen is the traffic generator type loadgen: Plumb's own, which needs nothing installed. Its ports are vhost-user ports, as the virtio side of them, and
// kernel interfaces; it paces, counts each frame, and measures latency.
//
// On this machine it runs in Plumb's own process; on another host the same program is copied there and runs as a worker as long as its connection
// lasts. The parts: port (what an attachment is), vhost and kernel (two kinds of them), frame (what is sent), tally (what came back), engine (threads and
// pacing), worker (here or elsewhere), hand (by hand). Start reading at Generator; trial.go is how a benchmark's trial becomes the engine's.
package loadgen

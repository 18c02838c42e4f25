//go:build !amd64 && !arm64

package engine

import "plumb/providers/loadgen/port"

func prefetchWrite([]port.Slot, int) {}

func prefetchRead([][]byte) {}

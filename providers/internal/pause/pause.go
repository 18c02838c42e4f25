// Package pause waits where time itself is what is waited for: the length of a stream, the rest between two.
package pause

import (
	"context"
	"time"
)

// For returns after d, or earlier with the context's error.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

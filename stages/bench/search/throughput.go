package search

import (
	"errors"
	"fmt"
	"time"
)

// ThroughputConfig is the throughput search of RFC 2544 section 26.1 by bisection.
type ThroughputConfig struct {
	Loads
	Loss float64 // loss ratio that still passes, [0,1); 0 by the RFC
	// Resolution is how far apart the bounds may be at the end, relative to the upper, (0,1); 0: 0.005.
	Resolution float64
	Trial      time.Duration // of a trial of the search; 0: as Final
	Final      time.Duration // of the trial that a reported rate has passed, at least Trial; 0: 60 s (RFC 2544 section 24)
	// Retries is how often a lossy trial is repeated before its load is rejected: loss verification by ETSI GS NFV-TST 009 section 12.3.3, max(r) there. 0: the first decides.
	Retries int
}

func (c ThroughputConfig) check() error {
	errs := []error{c.Loads.check(), ratio("the loss goal", c.Loss), resolution(c.Resolution), retries(c.Retries)}
	if c.Trial <= 0 || c.Trial > c.Final {
		errs = append(errs, fmt.Errorf("trials of %s in the search and %s at last; the first is above 0 and at most the second", c.Trial, c.Final))
	}
	return errors.Join(errs...)
}

func resolution(r float64) error {
	if !(r > 0 && r < 1) {
		return fmt.Errorf("the resolution is %g; it is a ratio above 0 and below 1", r)
	}
	return nil
}

func retries(n int) error {
	if n < 0 || n > 100 {
		return fmt.Errorf("%d retries of a lossy trial; it is 0 to 100", n)
	}
	return nil
}

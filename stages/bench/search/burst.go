package search

import "time"

// BackToBackConfig is the back-to-back test of RFC 9004, which replaces RFC 2544 section 26.4. Repeats, and the wait of at least 2 s between bursts, are the caller's.
type BackToBackConfig struct {
	Throughput float64       // frames/s and direction, found before for this frame size
	Max        float64       // the theoretical frame rate of the link, or the greatest rate of the tester, above 0: what a burst is sent at
	MinStep    int           // frames between the longest burst that passed and the shortest that did not; 0: 1 % of the buffer's order, see BackToBack
	MaxTime    time.Duration // the longest burst; 0: 30 s (RFC 9004 section 5.4)
	Retries    int           // as ThroughputConfig.Retries
}

// BurstsConfig is the test with bursty traffic of RFC 2544 section 21.
type BurstsConfig struct {
	Loads                    // of averages; Max is what frames of a burst follow one another at
	Lengths    []int         // frames, 2 or more each; nil: 16, 64, 256, 1024
	Resolution float64       // of the average rate, as ThroughputConfig.Resolution
	Duration   time.Duration // of a trial; 0: 60 s (RFC 2544 section 24)
	Loss       float64       // loss ratio that still passes, [0,1)
	Retries    int           // as ThroughputConfig.Retries
}

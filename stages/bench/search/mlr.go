package search

import (
	"errors"
	"fmt"
	"time"
)

// MLRConfig is a search for several goals at once.
type MLRConfig struct {
	Loads
	// Goals are searched in one run; each trial counts for all of them. Goals may contradict one another: each is judged alone.
	Goals []Goal // at least one
	// WarmUp is a trial at the greatest load before the first that counts, thrown away; 0: none. Of an unknown greatest load, the maximum trial is the warm-up.
	WarmUp time.Duration
	// TimeLimit ends a search that takes longer, with the bounds that it has, both marked unfinished; 0: none. The search reads no clock: time is the sum of the trials'
	// effective durations and Overhead for each.
	TimeLimit time.Duration
	// Overhead is what a trial takes beside its stream: warm-up, settle, drain and counting.
	Overhead time.Duration
}

func (c MLRConfig) check() error {
	errs := []error{c.Loads.check()}
	if len(c.Goals) == 0 {
		errs = append(errs, errors.New("there is no goal to search for"))
	}
	seen := map[string]bool{}
	for _, g := range c.Goals {
		errs = append(errs, g.check())
		if seen[g.Name] {
			errs = append(errs, fmt.Errorf("two goals are named %s", g.Name))
		}
		seen[g.Name] = true
	}
	if c.WarmUp < 0 || c.TimeLimit < 0 || c.Overhead < 0 {
		errs = append(errs, fmt.Errorf("warm-up %s, time limit %s, overhead %s: none may be negative", c.WarmUp, c.TimeLimit, c.Overhead))
	}
	return errors.Join(errs...)
}

package graph

import "context"

// Walk visits every node after all that it waits for, several at a time within the limits. Each visit has a goroutine of its own. A node that
// fails skips those that wait for it, and nothing else. When the context ends no further visit is started; Walk returns once those that run
// have ended. They bring a context of their own, so that a caller may let them finish. With a cycle nothing is visited and the
// error is a *CycleError; failures of nodes are in the report only.
func (g *Graph[K]) Walk(ctx context.Context, l Limits[K], visit func(K) error) (Report[K], error) {
	s, err := g.Schedule(l)
	if err != nil {
		return Report[K]{}, err
	}
	type outcome struct {
		k   K
		err error
	}
	ended := make(chan outcome)
	for {
		for ctx.Err() == nil {
			k, ok := s.Next()
			if !ok {
				break
			}
			go func() { ended <- outcome{k, visit(k)} }()
		}
		if s.Running() == 0 {
			return s.Report(), nil
		}
		o := <-ended
		s.Done(o.k, o.err)
	}
}

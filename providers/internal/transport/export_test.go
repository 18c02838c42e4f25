package transport

// Waiting is how many calls of ReadFiles wait for the next round trip.
func (s *SSH) Waiting() int {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return len(s.files.waiting)
}

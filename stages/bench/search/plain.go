package search

// PlainConfig is what Plain searches for.
type PlainConfig struct {
	Loads
	Goals []Goal // Initial and Preceding are not used
}

package host

import (
	"testing"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
)

// faked opens one fake host as often as it is asked.
func faked(t *testing.T) func(*testing.T) providers.Host {
	dir := t.TempDir()
	return func(t *testing.T) providers.Host {
		c, err := fake.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return hostkit.New("fake", c, Gather)
	}
}

func TestHugepages(t *testing.T) { conformance.Run(t, hugepagesCase(faked(t), 64)) }

func TestShortGrantIsRolledBack(t *testing.T) { shortGrantIsRolledBack(t, faked(t)(t)) }

func TestSnapshotIsStable(t *testing.T) { snapshotIsStable(t, faked(t)(t)) }

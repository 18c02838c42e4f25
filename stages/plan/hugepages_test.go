package plan

import (
	"testing"

	"plumb/providers"
)

// TestAnySize resolves claims of any page size: granted pages count, else the host's, else 2 MB.
func TestAnySize(t *testing.T) {
	const mb2, gb1 = 2 << 20, 1 << 30
	host := func(sizes ...uint64) *providers.Facts {
		n := providers.Node{}
		for _, s := range sizes {
			n.Hugepages = append(n.Hugepages, providers.Hugepages{Size: s, Total: 4})
		}
		return &providers.Facts{Nodes: []providers.Node{n}}
	}
	grant := func(size, pages uint64) providers.HugepageClaim {
		return providers.HugepageClaim{Size: size, Pages: pages}
	}
	for _, c := range []struct {
		name        string
		facts       *providers.Facts
		grants      []providers.HugepageClaim
		bytes       uint64
		size, pages uint64
	}{
		{"nothing yet", host(), nil, 3 << 20, mb2, 2},
		{"the host's", host(gb1), nil, 512 << 20, gb1, 1},
		{"the larger of the host's", host(mb2, gb1), nil, 1 << 30, gb1, 1},
		{"granted before the host's", host(gb1), []providers.HugepageClaim{grant(mb2, 256)}, 512 << 20, mb2, 256},
		{"the larger that is granted", host(), []providers.HugepageClaim{grant(gb1, 2), grant(mb2, 256)}, 1025 << 20, gb1, 2},
		{"a grant of none is none", host(mb2), []providers.HugepageClaim{grant(gb1, 0)}, 4 << 20, mb2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			any := providers.HugepageClaim{Bytes: c.bytes}
			h := &hostClaims{facts: c.facts, held: []providers.HugepageClaim{any}, list: []claimant{
				{claims: providers.Claims{Grants: c.grants}}, {claims: providers.Claims{Hugepages: []providers.HugepageClaim{any, grant(mb2, 7)}}},
			}}
			h.resolvePages()
			for _, got := range []providers.HugepageClaim{h.held[0], h.list[1].claims.Hugepages[0]} {
				if got.Size != c.size || got.Pages != c.pages {
					t.Errorf("%d pages of %d bytes, want %d of %d", got.Pages, got.Size, c.pages, c.size)
				}
			}
			if fixed := h.list[1].claims.Hugepages[1]; fixed.Size != mb2 || fixed.Pages != 7 {
				t.Errorf("a claim of a size became %+v", fixed)
			}
		})
	}
}

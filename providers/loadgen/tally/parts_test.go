package tally

import (
	"math/rand/v2"
	"testing"
)

// Words of 64 frames are dealt out to queues of which some end early or begin late, so that their parts differ in size. A word has its number as its stamp.
func TestPartsTogether(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		words := 1 + r.IntN(100<<r.IntN(9))
		queues := []*parts{{}, {}, {}}
		missing := -1
		keep := r.IntN(words)
		for w := range words {
			left := 64
			if w <= keep && r.IntN(50) == 0 || seed%10 == 0 && w == words-1 {
				left, missing = r.IntN(64), w
			}
			for i, q := range queues {
				n := left
				switch {
				case i == 0 && w > words/5, i == 1 && w < words/2:
					continue
				case i < 2:
					n = r.IntN(left + 1)
				}
				left -= n
				if n > 0 {
					q.begin(uint64(w)*64, uint64(w+1))
					q.add(uint64(w)*64, n)
				}
			}
		}
		r.Shuffle(3, func(i, j int) { queues[i], queues[j] = queues[j], queues[i] })
		p := queues[0]
		p.join(queues[1])
		p.join(queues[2])
		stamp, ok := p.lastMissing(Sent{Frames: uint64(words) * 64, Last: uint64(words)})
		if ok != (missing >= 0) {
			t.Fatalf("seed %d: missing %v, want %d", seed, ok, missing)
		}
		if !ok {
			continue
		}
		// The word behind the part in which the last missing one is, or the last of all.
		size := 1 << p.shift
		if size > max(1, words/(partCount/2)) {
			t.Fatalf("seed %d: parts of %d words for %d", seed, size, words)
		}
		want := min((missing/size+1)*size+1, words)
		if got := int(stamp); got != want {
			t.Fatalf("seed %d: %d words in parts of %d: the last missing is before %d, want %d", seed, words, size, got, want)
		}
	}
}

func TestPartsWithHoles(t *testing.T) {
	// Only words 1 and 5000 came, so that the first two parts are put together and the stamp is the second's.
	var p parts
	p.begin(64, 7)
	p.add(64, 64)
	p.begin(5000*64, 9)
	p.add(5000*64, 64)
	if p.shift != 1 || p.stamps[0] != 7 || p.counts[0] != 64 || p.stamps[2500] != 9 || p.last != 2501 {
		t.Errorf("shift %d, first %d at %d, stamp %d, last %d", p.shift, p.counts[0], p.stamps[0], p.stamps[2500], p.last)
	}
	if stamp, ok := p.lastMissing(Sent{Frames: 5001 * 64, Last: 99}); !ok || stamp != 9 {
		t.Errorf("missing before %d %v, want 9", stamp, ok)
	}
	if stamp, ok := p.lastMissing(Sent{Frames: 5003 * 64, Last: 99}); !ok || stamp != 99 {
		t.Errorf("missing before %d %v, want 99", stamp, ok)
	}
}

// The first frame of a part may come to any of the queues, in whatever order they are joined.
func TestPartBeginsWithItsEarliestFrame(t *testing.T) {
	for _, stamps := range [][2]uint64{{50, 70}, {70, 50}} {
		var queues [2]parts
		for i := range queues {
			queues[i].begin(64, stamps[i])
			queues[i].add(64, 32)
		}
		queues[0].join(&queues[1])
		if stamp, ok := queues[0].lastMissing(Sent{Frames: 128, Last: 99}); !ok || stamp != 50 {
			t.Errorf("%v: missing before %d %v, want 50", stamps, stamp, ok)
		}
	}
}

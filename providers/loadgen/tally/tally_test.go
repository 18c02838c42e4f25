package tally

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Frame n is sent at 1000+10n ns in all tests but those of delays.
func sentAt(seq uint64) uint64 { return 1000 + 10*seq }

func sent(frames uint64) Sent {
	return Sent{Frames: frames, First: sentAt(0), Last: sentAt(frames - 1)}
}

// span is a row of frames from first to last, both included.
func span(first, last uint64) []uint64 {
	var s []uint64
	for n := first; n <= last; n++ {
		s = append(s, n)
	}
	return s
}

func join(parts ...[]uint64) []uint64 {
	var s []uint64
	for _, p := range parts {
		s = append(s, p...)
	}
	return s
}

func play(t *Tally, seqs []uint64) {
	for _, n := range seqs {
		t.Record(n, sentAt(n), sentAt(n)+5, false)
	}
}

func loss(seq uint64) *time.Duration {
	d := time.Duration(sentAt(seq) - sentAt(0))
	return &d
}

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		window int
		frames uint64
		came   []uint64
		want   Result // without Outage
	}{
		{"all", 0, 10, span(0, 9), Result{Received: 10}},
		{"nothing", 0, 10, nil, Result{Lost: 10, LastLoss: loss(9)}},
		{"only the first", 0, 10, span(0, 0), Result{Received: 1, Lost: 9, LastLoss: loss(9)}},
		{"only the last", 0, 10, span(9, 9), Result{Received: 1, Lost: 9, LastLoss: loss(9)}},
		{"loss in the middle", 0, 10, []uint64{0, 1, 2, 6, 7, 8, 9}, Result{Received: 7, Lost: 3, LastLoss: loss(6)}},
		{"loss at the head", 0, 10, span(3, 9), Result{Received: 7, Lost: 3, LastLoss: loss(3)}},
		{"loss at the tail", 0, 10, span(0, 6), Result{Received: 7, Lost: 3, LastLoss: loss(9)}},
		{"two gaps", 0, 10, []uint64{0, 2, 3, 4, 6, 7, 8, 9}, Result{Received: 8, Lost: 2, LastLoss: loss(6)}},
		{"duplicates", 0, 5, []uint64{0, 0, 1, 2, 1, 3, 4, 4, 4}, Result{Received: 5, Duplicated: 4}},
		{"reordered, then filled", 0, 6, []uint64{0, 3, 1, 2, 4, 5}, Result{Received: 6, Reordered: 2}},
		{"swapped pairs", 0, 6, []uint64{1, 0, 3, 2, 5, 4}, Result{Received: 6, Reordered: 3}},
		{"backwards", 0, 6, []uint64{5, 4, 3, 2, 1, 0}, Result{Received: 6, Reordered: 5}},
		{"the last gap filled, the one before not", 0, 10, []uint64{0, 2, 3, 7, 5, 4, 6, 8, 9}, Result{Received: 9, Lost: 1, Reordered: 3, LastLoss: loss(2)}},
		{"the last gap filled from above", 0, 10, []uint64{0, 1, 7, 6, 5, 8, 9}, Result{Received: 7, Lost: 3, Reordered: 2, LastLoss: loss(5)}},
		{"the last gap filled from below", 0, 10, []uint64{0, 1, 7, 2, 3, 8, 9}, Result{Received: 7, Lost: 3, Reordered: 2, LastLoss: loss(7)}},
		{"the last gap filled in the middle", 0, 10, []uint64{0, 1, 7, 4, 8, 9}, Result{Received: 6, Lost: 4, Reordered: 1, LastLoss: loss(7)}},
		{"duplicate of a late frame", 0, 4, []uint64{0, 2, 1, 1, 3}, Result{Received: 4, Reordered: 1, Duplicated: 1}},
		{"round the window many times", 128, 10000, span(0, 9999), Result{Received: 10000}},
		{"the window ends in a word", 128, 10001, span(0, 10000), Result{Received: 10001}},
		{"loss that the window has left", 128, 1000, join(span(0, 99), span(103, 999)), Result{Received: 997, Lost: 3, LastLoss: loss(103)}},
		{"loss at the end of a word", 128, 1000, join(span(0, 126), span(128, 999)), Result{Received: 999, Lost: 1, LastLoss: loss(128)}},
		{"loss of whole words", 128, 1000, join(span(0, 63), span(256, 999)), Result{Received: 808, Lost: 192, LastLoss: loss(256)}},
		{"loss of more than the window", 128, 2000, join(span(0, 70), span(1507, 1999)), Result{Received: 564, Lost: 1436, LastLoss: loss(1507)}},
		{"loss of more than the window, then filled from above", 128, 2000, join(span(0, 70), span(1507, 1510), []uint64{1408, 1409}, span(1511, 1999)),
			Result{Received: 566, Lost: 1434, Reordered: 2, LastLoss: loss(1507)}},
		{"loss of more than the window, its part in the window filled", 128, 2000, join(span(0, 70), []uint64{1507}, span(1408, 1506), span(1508, 1999)),
			Result{Received: 663, Lost: 1337, Reordered: 99, LastLoss: loss(1408)}},
		{"filled just in time", 128, 1000, join(span(0, 63), span(65, 191), []uint64{64}, span(192, 999)), Result{Received: 1000, Reordered: 1}},
		{"too late", 128, 1000, join(span(0, 62), span(64, 192), []uint64{63}, span(193, 999)), Result{Received: 999, Lost: 1, Late: 1, LastLoss: loss(64)}},
		{"too late by one frame", 128, 1000, join(span(0, 126), span(128, 192), []uint64{127}, span(193, 999)), Result{Received: 999, Lost: 1, Late: 1, LastLoss: loss(128)}},
		{"a duplicate, too late", 128, 1000, join(span(0, 500), []uint64{3}, span(501, 999)), Result{Received: 1000, Late: 1}},
		{"the frame behind the last loss comes after the window has left the loss", 128, 1000, join(span(0, 126), span(129, 255), []uint64{128}, span(256, 999)),
			Result{Received: 999, Lost: 1, Reordered: 1, LastLoss: loss(128)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ta := New(c.window)
			for range 2 { // the second time after Reset
				play(ta, c.came)
				got, err := Sum(sent(c.frames), ta)
				if err != nil {
					t.Fatal(err)
				}
				got.Outage, got.OutageAt = nil, nil
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				if ta.Received() != c.want.Received {
					t.Errorf("Received() = %d", ta.Received())
				}
				ta.Reset()
			}
		})
	}
}

// The frame behind a loss at the end of a word may come when the loss has left the window already.
func TestLastLossIsFoundWhenItsNeighbourIsLate(t *testing.T) {
	ta := New(128)
	play(ta, join(span(0, 126), span(130, 192), []uint64{129, 128}, span(193, 400)))
	got, err := Sum(sent(401), ta)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(loss(128), got.LastLoss); diff != "" {
		t.Error(diff)
	}
	ta.Reset()
	play(ta, join(span(0, 62), span(65, 191), []uint64{64}, span(192, 400))) // 63 has left when 64 comes
	if got, err = Sum(sent(401), ta); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(loss(64), got.LastLoss); diff != "" {
		t.Error(diff)
	}
}

func TestMoreThanWasSent(t *testing.T) {
	for _, c := range []struct {
		came [][]uint64
		want string
	}{
		{[][]uint64{span(0, 10)}, "frame number 10 came back, but only 10 were sent"},
		{[][]uint64{{2, 1 << 43}}, "frame number 8796093022208 came back"},
		{[][]uint64{span(0, 9), span(0, 3)}, "14 distinct frames came back, but only 10 were sent"},
	} {
		var ts []*Tally
		for _, came := range c.came {
			ts = append(ts, New(128))
			play(ts[len(ts)-1], came)
		}
		got, err := Sum(sent(10), ts...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.came, err)
		}
		if got.Received > 10 && got.Lost != 0 {
			t.Errorf("%v: %d lost", c.came, got.Lost)
		}
	}
}

func TestNothingSent(t *testing.T) {
	for _, ts := range [][]*Tally{nil, {New(128)}, {New(128), New(128)}} {
		got, err := Sum(Sent{}, ts...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Result{}, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNoReceiver(t *testing.T) {
	got, err := Sum(sent(7))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Result{Lost: 7, LastLoss: loss(6)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestQueuesTogether(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames uint64
		queues [][]uint64
		want   Result
	}{
		{"dealt out in turn", 8, [][]uint64{{0, 2, 4, 6}, {1, 3, 5, 7}}, Result{Received: 8}},
		{"an idle queue", 4, [][]uint64{span(0, 3), nil}, Result{Received: 4}},
		{"nothing anywhere", 300, [][]uint64{nil, nil}, Result{Lost: 300, LastLoss: loss(299)}},
		{"reordering within a queue", 4, [][]uint64{{2, 0}, {1, 3, 3}}, Result{Received: 4, Reordered: 1, Duplicated: 1}},
		{"loss in the second part of 64", 300, [][]uint64{span(0, 99), span(101, 299)}, Result{Received: 299, Lost: 1, LastLoss: loss(128)}},
		{"the tail is missing", 1000, [][]uint64{span(0, 99), span(100, 899)}, Result{Received: 900, Lost: 100, LastLoss: loss(999)}},
		{"the last frame is missing", 1000, [][]uint64{span(0, 99), span(100, 998)}, Result{Received: 999, Lost: 1, LastLoss: loss(999)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ts []*Tally
			for _, came := range c.queues {
				ts = append(ts, New(256))
				play(ts[len(ts)-1], came)
			}
			got, err := Sum(sent(c.frames), ts...)
			if err != nil {
				t.Fatal(err)
			}
			got.Outage, got.OutageAt = nil, nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOutage(t *testing.T) {
	ns := func(n time.Duration) *time.Duration { return &n }
	for _, c := range []struct {
		name           string
		looks          [][]uint64
		outage, begins *time.Duration
	}{
		{"nothing", [][]uint64{nil}, nil, nil},
		{"one frame", [][]uint64{{2000}}, nil, nil},
		{"all in one look", [][]uint64{{2000, 2000}}, nil, nil},
		{"the longest of three", [][]uint64{{2000, 2010, 2510, 2600}}, ns(500), ns(1010)},
		{"a clock that goes back", [][]uint64{{2000, 2010, 1500, 2020}}, ns(10), ns(1000)},
		{"a clock that goes back a little", [][]uint64{{2000, 2010, 2005, 2030}}, ns(20), ns(1010)},
		{"a clock before the first frame was sent", [][]uint64{{500, 800}}, ns(300), ns(0)},
		{"two queues that fill each other's gaps", [][]uint64{{2000, 3000, 3010}, {2500, 2510, 3100}}, ns(500), ns(1000)},
		{"two queues, both silent for a while", [][]uint64{{2000, 2100, 4000}, {2050, 2200, 3500}}, ns(1300), ns(1200)},
		{"a queue that began later", [][]uint64{{2000, 2400}, {2300, 2310, 9000}}, ns(6600), ns(1400)},
		{"queues one after the other", [][]uint64{{2000, 2010}, {2500, 2510}}, ns(490), ns(1010)},
		{"an idle queue", [][]uint64{{2000, 2010}, nil}, ns(10), ns(1000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ts []*Tally
			n := uint64(0)
			for _, looks := range c.looks {
				ta := New(128)
				for _, now := range looks {
					ta.Record(n, sentAt(n), now, false)
					n++
				}
				ts = append(ts, ta)
			}
			got, err := Sum(sent(100), ts...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]*time.Duration{c.outage, c.begins}, []*time.Duration{got.Outage, got.OutageAt}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each queue has more than 32 gaps that are longer than the outage, and frames of the other in the middle of each.
func TestOutageThatWasNotKept(t *testing.T) {
	a, b := New(128), New(128)
	now := uint64(1000)
	for n := range uint64(40) {
		a.Record(4*n, sentAt(4*n), now, false)
		b.Record(4*n+1, sentAt(4*n+1), now+500, false)
		now += 1000
	}
	for n := range uint64(2) {
		a.Record(160+n, sentAt(160+n), now+n*600, false)
		b.Record(162+n, sentAt(162+n), now+n*600, false)
	}
	got, err := Sum(sent(1000), a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Outage != nil || got.OutageAt != nil {
		t.Errorf("outage %v at %v, though one of 600 ns was not kept", got.Outage, got.OutageAt)
	}
}

func TestNotes(t *testing.T) {
	if n := (Result{Received: 4}).Notes(); n != nil {
		t.Error(n)
	}
	want := []string{
		"3 frames came so late that they could not be told from duplicates any more; they count as lost",
		"2 latency samples are above 100 s and count as 100 s in the percentiles",
		"1 latency samples came out negative and count as 0: the clocks of the CPUs differ",
	}
	if diff := cmp.Diff(want, (Result{Late: 3, Clipped: 2, Skewed: 1}).Notes()); diff != "" {
		t.Error(diff)
	}
}

package frame

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIMIX(t *testing.T) {
	for name, want := range map[string][]int{
		"simple":       {64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64},
		"aaaaaaaddddg": {64, 64, 64, 64, 64, 64, 64, 512, 512, 512, 512, 1518},
		"abcdefghi":    {64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000},
	} {
		got, err := IMIX(name)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(name, diff)
		}
	}
	for name, want := range map[string]string{"": "is empty", "heavy": "is not known", "aaz": "not 'z'"} {
		if _, err := IMIX(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestMean(t *testing.T) {
	mix, err := IMIX("simple")
	if err != nil {
		t.Fatal(err)
	}
	for want, sizes := range map[int][]int{0: nil, 362: mix, 65: {64, 65}} { // 4342 / 12 = 361.8
		if got := Mean(sizes); got != want {
			t.Errorf("%v: %d, want %d", sizes, got, want)
		}
	}
}

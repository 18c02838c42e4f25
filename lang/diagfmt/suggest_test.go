package diagfmt

import "testing"

func TestSuggest(t *testing.T) {
	candidates := []string{"resource", "host", "module", "generator", "data", "locals", "abc", "abd"}
	for _, tt := range []struct{ given, want string }{
		{"resorce", "resource"},
		{"hots", "host"},
		{"hosts", "host"},
		{"local", "locals"},
		{"modlue", "module"},
		{"acb", "abc"}, // a swap is nearer than abd
		{"abe", "abc"}, // as near as abd: the first in order
		{"xyz", ""},
		{"", ""},
		{"provider", ""},
		{"host", "host"},
	} {
		if got := Suggest(tt.given, candidates); got != tt.want {
			t.Errorf("Suggest(%q) = %q, want %q", tt.given, got, tt.want)
		}
	}
	if got := DidYouMean("hots", candidates); got != ` Did you mean "host"?` {
		t.Errorf("DidYouMean = %q", got)
	}
	if got := DidYouMean("zzzz", candidates); got != "" {
		t.Errorf("DidYouMean without a near name = %q", got)
	}
}

package network

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"plumb/providers"
)

// longestAlias is what the kernel keeps of an alias (IFALIASZ of linux/if.h, 256, with the final NUL).
const longestAlias = 255

// aliasOf is our mark as the alias of a link: plumb:TESTBED:ADDRESS. It is one word to ip(8), which has no way to escape anything within quotes and sees comments in them: what is not harmless stands
// in it as %XX. An address that is too long is told by its digest.
func aliasOf(m providers.Mark) string {
	alias := "plumb:" + harmless(m.Testbed) + ":" + harmless(m.Address)
	if len(alias) <= longestAlias {
		return alias
	}
	sum := sha256.Sum256([]byte(m.Testbed + "\x00" + m.Address))
	return "plumb:" + hex.EncodeToString(sum[:]) + ":"
}

func harmless(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(alphanumeric+"_.-[]", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// owner is the mark in an alias; the zero Mark where there is none.
func owner(alias string) providers.Mark {
	parts := strings.Split(alias, ":")
	if len(parts) != 3 || parts[0] != "plumb" {
		return providers.Mark{}
	}
	testbed, err := url.PathUnescape(parts[1])
	address, err2 := url.PathUnescape(parts[2])
	if err != nil || err2 != nil {
		return providers.Mark{}
	}
	return providers.Mark{Testbed: testbed, Address: address}
}

// foreign is the error of something that is there and not ours. remove is how it would be removed.
func foreign(what, host, alias, remove string) error {
	who := owner(alias)
	whose := "it carries no mark of Plumb"
	if who.Testbed != "" {
		whose = fmt.Sprintf("it belongs to the testbed %s (%s)", who.Testbed, who.Address)
	}
	return fmt.Errorf("%s on %s %w: %s, so it is neither changed nor taken over. Choose another name, or remove it there by hand (%s)", what, host, providers.ErrForeign, whose, remove)
}

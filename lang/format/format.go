// Package format puts configuration files into their canonical form: spacing, alignment of equals signs and
// indentation, as HCL's own formatter does it. Comments, order and line breaks stay as they are.
//
// It works on bytes; reading and writing files is the caller's business.
package format

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Source formats the content of the file called filename. A file whose name ends in .json is returned as it is:
// its layout belongs to whatever wrote it. A file with syntax errors is returned as it is, with the errors.
// Formatting what Source returned changes nothing.
func Source(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if strings.HasSuffix(filename, ".json") {
		return src, nil
	}
	if _, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos); diags.HasErrors() {
		return src, diags
	}
	return settle(src), nil
}

// settle formats until nothing changes. The second round changes something only where the first moved a
// comment or a heredoc; the limit holds should two rounds ever undo one another.
func settle(src []byte) []byte {
	out := hclwrite.Format(src)
	for range 4 {
		next := hclwrite.Format(out)
		if string(next) == string(out) {
			break
		}
		out = next
	}
	return out
}

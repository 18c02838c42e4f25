package eval

import (
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
)

// blockInfo is what follows from a schema block, computed once.
type blockInfo struct {
	block      *schema.Block
	spec       hcldec.Spec
	ty         cty.Type
	nested     bool // has nested blocks, so that dynamic blocks are possible
	sensitive  bool
	attributes []string // sorted
	blocks     []string // sorted
	plain      bool     // nothing to fill in or check after decoding
}

func (e *Evaluator) block(b *schema.Block) *blockInfo {
	e.blocksMu.Lock()
	defer e.blocksMu.Unlock()
	info := e.blocks[b]
	if info == nil {
		info = &blockInfo{
			block: b, spec: b.DecoderSpec(), ty: b.ImpliedType(), nested: len(b.Blocks) > 0, sensitive: hasSensitive(b),
			attributes: sortedKeys(b.Attributes), blocks: sortedKeys(b.Blocks),
		}
		info.plain = !info.nested && !info.sensitive
		for _, a := range b.Attributes {
			if a.Required || a.Default != cty.NilVal || a.Canonical != nil || a.Validate != nil || len(a.OneOf) > 0 || a.Deprecated != "" || a.Reference != "" {
				info.plain = false
			}
		}
		e.blocks[b] = info
	}
	return info
}

// schemaOf is the schema of a resource type or data source; nil when there is none.
func (e *Evaluator) schemaOf(r addrs.Resource) *schema.Resource {
	if r.Mode == addrs.Data {
		return e.in.Catalog.Data[r.Type]
	}
	return e.in.Catalog.Resources[r.Type]
}

package state

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"

	"plumb/lang/config"
)

// Locate says where the state of a configuration is: dir/plumb.state.json, or what backend "local" { path } says, relative to dir.
// dir is the root module's folder; b may be nil.
func Locate(b *config.Backend, dir string) (string, hcl.Diagnostics) {
	if b == nil {
		return filepath.Join(dir, DefaultPath), nil
	}
	if b.Type != "local" {
		return "", hcl.Diagnostics{{
			Severity: hcl.DiagError,
			Summary:  "Unknown backend",
			Detail:   "There is no backend \"" + b.Type + "\". States are kept in local files: write backend \"local\" { path = \"...\" }, or leave the block out.",
			Subject:  b.Range.Ptr(),
		}}
	}
	var local struct {
		Path string `hcl:"path,optional"`
	}
	diags := gohcl.DecodeBody(b.Body, nil, &local)
	if diags.HasErrors() {
		return "", diags
	}
	switch {
	case local.Path == "":
		local.Path = filepath.Join(dir, DefaultPath)
	case !filepath.IsAbs(local.Path):
		local.Path = filepath.Join(dir, local.Path)
	}
	return local.Path, diags
}

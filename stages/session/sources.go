package session

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/config"
)

// hiddenText stands in a kept source where a secret was.
const hiddenText = "(sensitive value)"

// publicSources are the files of the configuration, named from the root module's folder, without the defaults of sensitive variables: neither where they
// are given nor where their texts stand again.
func (s *Session) publicSources() map[string][]byte {
	byFile := map[string][]string{} // sensitive variables
	var secrets []string
	var gather func(*config.Module)
	gather = func(m *config.Module) {
		for name, v := range m.Variables {
			if v.Sensitive && v.Default != cty.NilVal && !v.Default.IsNull() {
				byFile[v.Range.Filename] = append(byFile[v.Range.Filename], name)
				secrets = append(secrets, spellings(v.Default)...)
			}
		}
		for _, c := range m.Calls {
			if c.Module != nil {
				gather(c.Module)
			}
		}
	}
	gather(s.Config.Root)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be part of another
	out := make(map[string][]byte, len(s.Config.Sources))
	for name, src := range s.Config.Sources {
		src = hideDefaults(name, src, byFile[name])
		for _, secret := range secrets {
			src = bytes.ReplaceAll(src, []byte(secret), []byte(hiddenText))
		}
		if rel, err := filepath.Rel(s.Dir, name); err == nil {
			name = rel
		}
		out[name] = src
	}
	return out
}

// spellings are the ways in which the texts of a value may stand in a file.
func spellings(v cty.Value) []string {
	var out []string
	_ = cty.Walk(v, func(_ cty.Path, e cty.Value) (bool, error) {
		if e.Type() != cty.String || !e.IsKnown() || e.IsNull() || e.AsString() == "" {
			return true, nil
		}
		text := e.AsString()
		var quoted bytes.Buffer
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(text) // a string can always be written
		inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(quoted.String()), `"`), `"`)
		template := strings.NewReplacer("${", "$${", "%{", "%%{")
		out = append(out, text, inner, template.Replace(text), template.Replace(inner))
		return true, nil
	})
	return out
}

// hideDefaults takes the defaults of the named variables out of a file, whatever their type. A JSON file stays as it is.
func hideDefaults(name string, src []byte, variables []string) []byte {
	if len(variables) == 0 {
		return src
	}
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return src
	}
	var at []hcl.Range
	for _, b := range f.Body.(*hclsyntax.Body).Blocks {
		if d := b.Body.Attributes["default"]; b.Type == "variable" && len(b.Labels) == 1 && slices.Contains(variables, b.Labels[0]) && d != nil {
			at = append(at, d.Expr.Range())
		}
	}
	slices.SortFunc(at, func(a, b hcl.Range) int { return b.Start.Byte - a.Start.Byte }) // from the end: the places before stay right
	for _, r := range at {
		hidden := `"` + hiddenText + `"`
		if bytes.HasSuffix(src[:r.End.Byte], []byte("\n")) { // a heredoc ends with its line
			hidden += "\n"
		}
		src = slices.Concat(src[:r.Start.Byte], []byte(hidden), src[r.End.Byte:])
	}
	return src
}

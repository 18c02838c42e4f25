package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// topLevel is what may stand in a file. Blocks of later versions and of Terraform are here too, so that the error can say more
// than that they are unknown.
var topLevel = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "plumb"},
	{Type: "variable", LabelNames: []string{"name"}},
	{Type: "locals"},
	{Type: "output", LabelNames: []string{"name"}},
	{Type: "module", LabelNames: []string{"name"}},
	{Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "data", LabelNames: []string{"type", "name"}},
	{Type: "host", LabelNames: []string{"name"}},
	{Type: "generator", LabelNames: []string{"type", "name"}},
	{Type: "benchmark", LabelNames: []string{"name"}},
	{Type: "campaign", LabelNames: []string{"name"}},
	{Type: "import"},
	{Type: "moved"},
	{Type: "removed"},
	{Type: "check", LabelNames: []string{"name"}},
}}

// instead says what to do about a block that is known but not had.
var instead = map[string]string{
	"campaign": "Until then run apply and bench once for each value of the variables that you want to vary.",
	"import":   "Until then objects that Plumb did not make can only be made anew by it.",
	"moved":    "Until then a renamed resource is destroyed and made again.",
	"removed":  "Until then use the command \"plumb state rm ADDRESS\".",
	"check":    "Use a postcondition in a lifecycle block, or a require block in a benchmark.",
}

// decodeFile sorts the blocks of a file into the module.
func (l *loader) decodeFile(m *Module, f file) {
	before := len(l.diags)
	defer func() { // HCL tells what does not belong first; people read from top to bottom
		slices.SortStableFunc(l.diags[before:], func(a, b *hcl.Diagnostic) int { return cmp.Compare(offset(a), offset(b)) })
	}()
	content, diags := f.body.Content(topLevel)
	l.diags = append(l.diags, explainTop(diags)...)
	for _, b := range content.Blocks {
		switch b.Type {
		case "plumb":
			l.decodeSettings(m, b)
		case "variable":
			l.decodeVariable(m, b)
		case "locals":
			l.decodeLocals(m, b)
		case "output":
			l.decodeOutput(m, b)
		case "module":
			l.decodeCall(m, b)
		case "resource", "data":
			l.decodeResource(m, b)
		case "host":
			l.decodeHost(m, b)
		case "generator":
			l.decodeGenerator(m, b)
		case "benchmark":
			l.decodeBenchmark(m, b)
		default:
			l.errorf(b.DefRange, "Block not supported yet", "%s blocks are not supported yet by this version of Plumb. %s", b.Type, instead[b.Type])
		}
	}
}

func offset(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return 0
	}
	return d.Subject.Start.Byte
}

// explainTop adds to HCL's own errors about a file's content what only Plumb knows.
func explainTop(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		switch {
		case d.Summary == "Unsupported block type" && strings.Contains(d.Detail, `type "terraform"`):
			d.Detail += " Plumb's settings stand in a plumb block."
		case d.Summary == "Unsupported block type" && strings.Contains(d.Detail, `type "provider"`):
			d.Detail += " Plumb's providers need no configuration: what differs between machines stands in host blocks."
		case d.Summary == "Unsupported argument" && !strings.Contains(d.Detail, "Did you mean"):
			d.Detail += " A file holds blocks only; values that are used more than once stand in a locals block."
		}
	}
	return diags
}

// content decodes the fixed part of a block and reports what does not belong.
func (l *loader) content(body hcl.Body, schema *hcl.BodySchema) *hcl.BodyContent {
	content, diags := body.Content(schema)
	l.diags = append(l.diags, diags...)
	return content
}

// partial takes the fixed part of a block out and leaves the rest to lang/eval.
func (l *loader) partial(body hcl.Body, schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body) {
	content, rest, diags := body.PartialContent(schema)
	l.diags = append(l.diags, diags...)
	return content, rest
}

// validName checks the label that names an object.
func (l *loader) validName(b *hcl.Block, label int, what string) bool {
	name := b.Labels[label]
	if hclsyntax.ValidIdentifier(name) {
		return true
	}
	l.errorf(b.LabelRanges[label], "Invalid name", "%q is not a %s. It must begin with a letter or underscore and have only letters, digits, underscores and dashes.", name, what)
	return false
}

// put adds an object under its name unless that is taken.
func put[V any](l *loader, into map[string]V, key, what string, v V, at hcl.Range, rangeOf func(V) hcl.Range) {
	if first, taken := into[key]; taken {
		l.errorf(at, "Duplicate definition", "%s is already defined at %s. Names must be unique within a module, whichever file they stand in.", upperFirst(what), place(rangeOf(first)))
		return
	}
	into[key] = v
}

func place(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

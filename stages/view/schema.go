package view

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"plumb/lang/diagfmt"
	"plumb/lang/schema"
)

// The JSON form of a catalog, for programs: `plumb providers schema -json`.
type (
	catalogJSON struct {
		Format     string                   `json:"format_version"`
		Resources  map[string]*resourceJSON `json:"resources"`
		Data       map[string]*resourceJSON `json:"data_sources"`
		Generators map[string]*resourceJSON `json:"generators"`
		Host       *blockJSON               `json:"host"`
		Benchmark  *blockJSON               `json:"benchmark"`
		Methods    map[string]*blockJSON    `json:"methods"`
	}
	resourceJSON struct {
		Kind        string        `json:"kind,omitempty"` // object, setting
		Description string        `json:"description"`
		Hostless    bool          `json:"hostless,omitempty"`
		Version     int           `json:"schema_version"`
		After       []string      `json:"after,omitempty"`
		LostOn      []schema.Loss `json:"lost_on,omitempty"`
		Block       *blockJSON    `json:"block"`
	}
	blockJSON struct {
		Description string                    `json:"description,omitempty"`
		Nesting     string                    `json:"nesting,omitempty"`
		MinItems    int                       `json:"min_items,omitempty"`
		MaxItems    int                       `json:"max_items,omitempty"`
		Attributes  map[string]*attributeJSON `json:"attributes,omitempty"`
		Blocks      map[string]*blockJSON     `json:"blocks,omitempty"`
	}
	attributeJSON struct {
		Type        json.RawMessage `json:"type"`
		Description string          `json:"description"`
		Required    bool            `json:"required,omitempty"`
		Optional    bool            `json:"optional,omitempty"`
		Computed    bool            `json:"computed,omitempty"`
		Sensitive   bool            `json:"sensitive,omitempty"`
		Default     json.RawMessage `json:"default,omitempty"`
		Cost        *schema.Cost    `json:"cost,omitempty"`
		OneOf       []string        `json:"one_of,omitempty"`
		Since       string          `json:"since,omitempty"`
		Deprecated  string          `json:"deprecated,omitempty"`
	}
)

// SchemaJSON writes the whole catalog.
func SchemaJSON(w io.Writer, cat *schema.Catalog) error {
	out := catalogJSON{
		Format: "1.0", Resources: map[string]*resourceJSON{}, Data: map[string]*resourceJSON{}, Generators: map[string]*resourceJSON{},
		Methods: map[string]*blockJSON{}, Host: blockToJSON(cat.Host, false), Benchmark: blockToJSON(cat.Benchmark, false),
	}
	for name, r := range cat.Resources {
		out.Resources[name] = resourceToJSON(r, true)
	}
	for name, r := range cat.Data {
		out.Data[name] = resourceToJSON(r, false)
	}
	for name, g := range cat.Generators {
		out.Generators[name] = &resourceJSON{Description: g.Description, Hostless: g.Hostless, Block: blockToJSON(&g.Block, false)}
	}
	for name, b := range cat.Methods {
		out.Methods[name] = blockToJSON(b, false)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

func resourceToJSON(r *schema.Resource, managed bool) *resourceJSON {
	out := &resourceJSON{Description: r.Description, Hostless: r.Hostless, Version: r.Version, After: r.After, LostOn: r.LostOn, Block: blockToJSON(&r.Block, managed)}
	switch {
	case !managed:
	case r.Setting:
		out.Kind = "setting"
	default:
		out.Kind = "object"
	}
	return out
}

func blockToJSON(b *schema.Block, costs bool) *blockJSON {
	if b == nil {
		return nil
	}
	out := &blockJSON{Description: b.Description, Attributes: map[string]*attributeJSON{}, Blocks: map[string]*blockJSON{}}
	for name, a := range b.Attributes {
		j := &attributeJSON{
			Description: a.Description, Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive,
			OneOf: a.OneOf, Since: a.Since, Deprecated: a.Deprecated,
		}
		j.Type, _ = ctyjson.MarshalType(a.Type)
		if a.Default != cty.NilVal {
			j.Default, _ = ctyjson.Marshal(a.Default, a.Type)
		}
		if costs && (a.Optional || a.Required) {
			j.Cost = &a.Cost
		}
		out.Attributes[name] = j
	}
	for name, n := range b.Blocks {
		inner := blockToJSON(&n.Block, costs)
		inner.Nesting, inner.MinItems, inner.MaxItems = nestingName(n.Nesting), n.MinItems, n.MaxItems
		out.Blocks[name] = inner
	}
	return out
}

func nestingName(n schema.Nesting) string { return [...]string{"single", "list", "map"}[n] }

// SchemaList writes one line for each type.
func SchemaList(w io.Writer, cat *schema.Catalog, st Style) error {
	section := func(title string, rows [][2]string) {
		width := 0
		for _, r := range rows {
			width = max(width, len(r[0]))
		}
		fmt.Fprintln(w, st.paint(bold, title))
		for _, r := range rows {
			fmt.Fprintf(w, "  %-*s  %s\n", width, r[0], firstSentence(r[1]))
		}
		fmt.Fprintln(w)
	}
	section("Resources", rowsOf(cat.Resources, func(r *schema.Resource) string { return r.Description }))
	section("Data sources", rowsOf(cat.Data, func(r *schema.Resource) string { return r.Description }))
	section("Generators", rowsOf(cat.Generators, func(g *schema.Generator) string { return g.Description }))
	section("Benchmark methods", rowsOf(cat.Methods, func(b *schema.Block) string { return b.Description }))
	return nil
}

func rowsOf[V any](m map[string]V, text func(V) string) [][2]string {
	var out [][2]string
	for _, k := range sortedKeys(m) {
		out = append(out, [2]string{k, text(m[k])})
	}
	return out
}

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// SchemaOf writes one type whole.
func SchemaOf(w io.Writer, cat *schema.Catalog, name string, st Style) error {
	found := false
	for _, e := range entries(cat) {
		if e.name != name {
			continue
		}
		found = true
		fmt.Fprintf(w, "%s\n\n%s\n", st.paint(bold, e.kind+" "+e.name), e.description)
		if e.example != "" {
			fmt.Fprintf(w, "\nExample:\n\n%s\n", indentLines(strings.TrimSpace(e.example), 4))
		}
		fmt.Fprintln(w)
		describe(w, e.block, 2, e.costs)
	}
	if found {
		return nil
	}
	var names []string
	for _, e := range entries(cat) {
		names = append(names, e.name)
	}
	hint := ""
	if s := diagfmt.Suggest(name, names); s != "" {
		hint = fmt.Sprintf(" Did you mean %q?", s)
	}
	return fmt.Errorf("there is no resource, data source, generator or method %q.%s", name, hint)
}

func indentLines(s string, n int) string {
	return indent(n) + strings.ReplaceAll(s, "\n", "\n"+indent(n))
}

func describe(w io.Writer, b *schema.Block, depth int, costs bool) {
	for _, name := range sortedKeys(b.Attributes) {
		a := b.Attributes[name]
		fmt.Fprintf(w, "%s%s  %s\n%s%s\n", indent(depth), name, strings.Join(facts(a, costs), ", "), indent(depth+4), a.Description)
	}
	for _, name := range sortedKeys(b.Blocks) {
		n := b.Blocks[name]
		fmt.Fprintf(w, "%s%s {}  block, %s\n%s%s\n", indent(depth), name, blockCount(n), indent(depth+4), n.Description)
		describe(w, &n.Block, depth+4, costs)
	}
}

func blockCount(n *schema.NestedBlock) string {
	switch {
	case n.Nesting == schema.Single && n.MinItems > 0:
		return "required"
	case n.Nesting == schema.Single:
		return "at most one"
	case n.Nesting == schema.Map:
		return "any number, each with a label"
	case n.MaxItems > 0:
		return fmt.Sprintf("%d to %d", n.MinItems, n.MaxItems)
	case n.MinItems > 0:
		return fmt.Sprintf("at least %d", n.MinItems)
	}
	return "any number"
}

func facts(a *schema.Attribute, costs bool) []string {
	out := []string{typeexpr.TypeString(a.Type)}
	switch {
	case a.Required:
		out = append(out, "required")
	case a.Optional && a.Computed:
		out = append(out, "optional, else computed")
	case a.Optional:
		out = append(out, "optional")
	default:
		return append(out, "read-only")
	}
	if a.Default != cty.NilVal {
		raw, _ := ctyjson.Marshal(a.Default, a.Type)
		out = append(out, "default "+inline(decode(raw)))
	}
	if len(a.OneOf) > 0 {
		out = append(out, "one of "+strings.Join(a.OneOf, " | "))
	}
	if costs {
		out = append(out, "a change costs "+a.Cost.String())
	}
	if a.Since != "" {
		out = append(out, "since "+a.Since)
	}
	if a.Deprecated != "" {
		out = append(out, "deprecated: "+a.Deprecated)
	}
	return out
}

type entry struct {
	kind, name, description, example string
	block                            *schema.Block
	costs                            bool
}

func entries(cat *schema.Catalog) []entry {
	var out []entry
	for _, n := range sortedKeys(cat.Resources) {
		r := cat.Resources[n]
		out = append(out, entry{"resource", n, r.Description, r.Example, &r.Block, true})
	}
	for _, n := range sortedKeys(cat.Data) {
		r := cat.Data[n]
		out = append(out, entry{"data", n, r.Description, r.Example, &r.Block, false})
	}
	for _, n := range sortedKeys(cat.Generators) {
		g := cat.Generators[n]
		out = append(out, entry{"generator", n, g.Description, g.Example, &g.Block, false})
	}
	for _, n := range sortedKeys(cat.Methods) {
		out = append(out, entry{"method", n, cat.Methods[n].Description, "", cat.Methods[n], false})
	}
	if cat.Host != nil {
		out = append(out, entry{"block", "host", cat.Host.Description, "", cat.Host, false})
	}
	if cat.Benchmark != nil {
		out = append(out, entry{"block", "benchmark", cat.Benchmark.Description, "", cat.Benchmark, false})
	}
	return slices.Clip(out)
}

// SchemaMarkdown writes the reference page, docs/reference.md.
func SchemaMarkdown(w io.Writer, cat *schema.Catalog) error {
	fmt.Fprint(w, "# Reference\n\nMade by `make docs` from the schemas; do not edit. What a change costs is explained in [architecture.md](architecture.md#costs).\n")
	for _, e := range entries(cat) {
		fmt.Fprintf(w, "\n## %s `%s`\n\n%s\n", e.kind, e.name, e.description)
		if e.example != "" {
			fmt.Fprintf(w, "\n```hcl\n%s\n```\n", strings.TrimSpace(e.example))
		}
		markdownBlock(w, e.block, "", e.costs)
	}
	return nil
}

func markdownBlock(w io.Writer, b *schema.Block, prefix string, costs bool) {
	if len(b.Attributes) > 0 {
		fmt.Fprint(w, "\n| argument | | meaning |\n|---|---|---|\n")
		for _, n := range sortedKeys(b.Attributes) {
			a := b.Attributes[n]
			fmt.Fprintf(w, "| `%s%s` | %s | %s |\n", prefix, n, cell(strings.Join(facts(a, costs), ", ")), cell(a.Description))
		}
	}
	for _, n := range sortedKeys(b.Blocks) {
		nb := b.Blocks[n]
		fmt.Fprintf(w, "\nBlock `%s%s` (%s): %s\n", prefix, n, blockCount(nb), nb.Description)
		markdownBlock(w, &nb.Block, prefix+n+".", costs)
	}
}

func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", "\\|"), "\n", " ") }

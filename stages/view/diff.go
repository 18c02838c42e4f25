package view

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/stages/plan"
)

// body writes the inside of one changed object, line by line.
type body struct {
	Style
	unknown   map[string]bool
	sensitive map[string]bool
	costs     map[string]schema.Cost
	verbose   bool
	out       *strings.Builder
}

func pathKey(p plan.Path) string { return strings.Join(p, "\x00") }

func newBody(c *plan.Change, st Style, verbose bool, out *strings.Builder) *body {
	b := &body{Style: st, unknown: map[string]bool{}, sensitive: map[string]bool{}, costs: map[string]schema.Cost{}, verbose: verbose, out: out}
	for _, p := range c.Unknown {
		b.unknown[pathKey(p)] = true
	}
	for _, p := range c.Sensitive {
		b.sensitive[pathKey(p)] = true
	}
	for _, a := range c.Changed {
		b.costs[pathKey(a.Path)] = a.Cost
	}
	return b
}

func (b *body) line(depth int, symbol, text string) {
	if symbol == "" {
		symbol = " "
	}
	b.out.WriteString(indent(depth*4-2) + b.paint(symbolColor(symbol), symbol) + " " + text + "\n")
}

func symbolColor(symbol string) string {
	switch symbol {
	case "+":
		return green
	case "-":
		return red
	case "~":
		return yellow
	}
	return ""
}

// object writes the members of an object at depth. block is its schema where it is a block, nil inside a value.
func (b *body) object(depth int, path plan.Path, before, after map[string]any, block *schema.Block) {
	before, after = plain(before, block), plain(after, block)
	names := sortedKeys(merged(before, after))
	width, hidden := 0, 0
	shown := names[:0:0]
	for _, n := range names {
		p := append(slices.Clone(path), n)
		switch {
		case b.changed(p, before[n], after[n]):
		case b.verbose && !empty(after[n]):
		case before != nil && after != nil && n == "name" && len(path) == 0: // always say what it is
		default:
			if !empty(after[n]) {
				hidden++
			}
			continue
		}
		shown = append(shown, n)
		if nested(block, n) == nil {
			width = max(width, len(keyHCL(n)))
		}
	}
	for _, n := range shown {
		b.member(depth, append(slices.Clone(path), n), n, width, before, after, block)
	}
	if hidden > 0 {
		b.line(depth, "", b.paint(dim, "# ("+plural(hidden, "unchanged attribute")+" hidden)"))
	}
}

func (b *body) member(depth int, p plan.Path, name string, width int, before, after map[string]any, block *schema.Block) {
	old, now := before[name], after[name]
	key := pathKey(p)
	label := keyHCL(name) + indent(width-len(keyHCL(name))) + " = "
	symbol := "~"
	switch {
	case !b.changed(p, old, now):
		symbol = " "
	case before == nil || empty(old):
		symbol = "+"
	case after == nil || (empty(now) && !b.hasUnknown(p)):
		symbol = "-"
	}
	note := ""
	if c, ok := b.costs[key]; (ok && symbol != "+" || ok && before != nil) && !reported(block, name) {
		note = b.costNote(c)
	}
	if b.sensitive[key] {
		b.line(depth, symbol, label+"(sensitive value)"+note)
		return
	}
	if b.unknown[key] {
		text := "(known after apply)"
		if before != nil && !empty(old) {
			text = b.inline(p, old) + " -> " + text
		}
		b.line(depth, symbol, label+text+note)
		return
	}
	if inner := nested(block, name); inner != nil {
		b.blocks(depth, p, name, symbol, old, now, inner, note)
		return
	}
	oldMap, oldIs := old.(map[string]any)
	nowMap, nowIs := now.(map[string]any)
	oldList, oldIsL := old.([]any)
	nowList, nowIsL := now.([]any)
	switch {
	case symbol == " ":
		b.line(depth, "", label+b.inline(p, now))
	case now == nil && !b.hasUnknown(p):
		b.line(depth, symbol, label+b.inline(p, old)+" -> null"+note)
	case (oldIs || nowIs) && (old == nil || oldIs) && (now == nil || nowIs) && len(oldMap)+len(nowMap) > 0:
		b.line(depth, symbol, label+"{"+note)
		b.object(depth+1, p, oldMap, nowMap, nil)
		b.line(depth, "", "}")
	case (oldIsL || nowIsL) && (old == nil || oldIsL) && (now == nil || nowIsL) && len(b.inline(p, old))+len(b.inline(p, now)) > 60:
		b.line(depth, symbol, label+"["+note)
		b.list(depth+1, p, oldList, nowList)
		b.line(depth, "", "]")
	case symbol == "+" && before == nil || old == nil:
		b.line(depth, symbol, label+b.inline(p, now)+note)
	default:
		b.line(depth, symbol, label+b.inline(p, old)+" -> "+b.inline(p, now)+note)
	}
}

// inline writes a value on one line, without the sensitive parts below the path.
func (b *body) inline(p plan.Path, v any) string { return inline(b.mask(p, v)) }

// mask is the value with its sensitive parts hidden. What is masked may be printed and not compared: two secrets look the same.
func (b *body) mask(p plan.Path, v any) any {
	switch {
	case b.sensitive[pathKey(p)]:
		return hidden{}
	case !under(b.sensitive, p):
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = b.mask(append(slices.Clone(p), k), e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = b.mask(append(slices.Clone(p), strconv.Itoa(i)), e)
		}
		return out
	}
	return v
}

// plain takes the values of arguments of any type out of their JSON form, which says the type beside the value.
func plain(object map[string]any, block *schema.Block) map[string]any {
	if object == nil || block == nil {
		return object
	}
	out := maps.Clone(object)
	for name, a := range block.Attributes {
		if typed, ok := out[name].(map[string]any); ok && a.Type == cty.DynamicPseudoType {
			out[name] = typed["value"]
		}
	}
	return out
}

// blocks writes nested blocks: one object, a list of them, or a map of them by label.
func (b *body) blocks(depth int, p plan.Path, name, symbol string, old, now any, inner *schema.NestedBlock, note string) {
	one := func(p plan.Path, label string, o, n any) {
		om, _ := o.(map[string]any)
		nm, _ := n.(map[string]any)
		s := "~"
		switch {
		case !b.changed(p, o, n):
			s = " "
		case om == nil:
			s = "+"
		case nm == nil:
			s = "-"
		}
		b.line(depth, s, name+label+" {"+note)
		b.object(depth+1, p, om, nm, &inner.Block)
		b.line(depth, "", "}")
	}
	switch inner.Nesting {
	case schema.Single:
		one(p, "", old, now)
	case schema.List:
		ol, _ := old.([]any)
		nl, _ := now.([]any)
		for i := range max(len(ol), len(nl)) {
			q := append(slices.Clone(p), strconv.Itoa(i))
			if o, n := at(ol, i), at(nl, i); b.changed(q, o, n) || b.verbose {
				one(q, "", o, n)
			}
		}
	case schema.Map:
		om, _ := old.(map[string]any)
		nm, _ := now.(map[string]any)
		for _, k := range sortedKeys(merged(om, nm)) {
			q := append(slices.Clone(p), k)
			if b.changed(q, om[k], nm[k]) || b.verbose {
				one(q, " "+quoteHCL(k), om[k], nm[k])
			}
		}
	}
}

// list writes a long list by its longest common subsequence, so that one flow added in the middle is one line.
func (b *body) list(depth int, p plan.Path, old, now []any) {
	keep := lcs(old, now)
	hidden, i, j := 0, 0, 0
	flush := func() {
		if hidden > 0 {
			b.line(depth, "", b.paint(dim, "# ("+plural(hidden, "unchanged element")+" hidden)"))
			hidden = 0
		}
	}
	element := func(symbol string, v any, at int) {
		flush()
		if b.unknown[pathKey(append(slices.Clone(p), strconv.Itoa(at)))] && !b.sensitive[pathKey(append(slices.Clone(p), strconv.Itoa(at)))] && symbol == "+" {
			b.line(depth, symbol, "(known after apply),")
			return
		}
		b.line(depth, symbol, b.inline(append(slices.Clone(p), strconv.Itoa(at)), v)+",")
	}
	for _, k := range append(keep, [2]int{len(old), len(now)}) {
		for ; i < k[0]; i++ {
			element("-", old[i], i)
		}
		for ; j < k[1]; j++ {
			element("+", now[j], j)
		}
		if i < len(old) && j < len(now) {
			hidden++
		}
		i, j = i+1, j+1
	}
	flush()
}

// lcs pairs the indices of a longest common subsequence. Beyond a million cells it only pairs a common head and tail.
func lcs(a, b []any) [][2]int {
	var head, tail [][2]int
	lo, ha, hb := 0, len(a), len(b)
	for lo < ha && lo < hb && equal(a[lo], b[lo]) {
		head = append(head, [2]int{lo, lo})
		lo++
	}
	for ha > lo && hb > lo && equal(a[ha-1], b[hb-1]) {
		ha, hb = ha-1, hb-1
		tail = append(tail, [2]int{ha, hb})
	}
	slices.Reverse(tail)
	n, m := ha-lo, hb-lo
	if n*m > 1_000_000 {
		return append(head, tail...)
	}
	t := make([][]int, n+1)
	for i := range t {
		t[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if equal(a[lo+i], b[lo+j]) {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case equal(a[lo+i], b[lo+j]):
			head = append(head, [2]int{lo + i, lo + j})
			i, j = i+1, j+1
		case t[i+1][j] >= t[i][j+1]:
			i++
		default:
			j++
		}
	}
	return append(head, tail...)
}

// reported says that an attribute is only read: it follows from others, and its change costs nothing by itself.
func reported(block *schema.Block, name string) bool {
	if block == nil || block.Attributes[name] == nil {
		return false
	}
	a := block.Attributes[name]
	return a.Computed && !a.Optional && !a.Required
}

func (b *body) costNote(c schema.Cost) string {
	if c == schema.Replace {
		return b.paint(red, " # forces replacement")
	}
	if c == schema.Live {
		return b.paint(dim, " # live")
	}
	return b.paint(yellow, " # "+c.String())
}

// changed says whether anything at or below the path differs or is known only after apply.
func (b *body) changed(p plan.Path, old, now any) bool {
	return b.hasUnknown(p) || !equal(norm(old), norm(now)) || b.costUnder(p)
}

// norm makes an object that carries nothing the same as none.
func norm(v any) any {
	if empty(v) {
		return nil
	}
	return v
}

func (b *body) costUnder(p plan.Path) bool { return under(b.costs, p) }

func (b *body) hasUnknown(p plan.Path) bool { return under(b.unknown, p) }

func under[V any](m map[string]V, p plan.Path) bool {
	key := pathKey(p)
	for k := range m {
		if k == key || strings.HasPrefix(k, key+"\x00") {
			return true
		}
	}
	return false
}

func nested(block *schema.Block, name string) *schema.NestedBlock {
	if block == nil {
		return nil
	}
	return block.Blocks[name]
}

func merged[V any](a, b map[string]V) map[string]V {
	out := make(map[string]V, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

func at(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return nil
}

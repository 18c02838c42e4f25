package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"plumb/lang/diagfmt"
	"plumb/lang/schema"
)

// decode evaluates a body: dynamic blocks, decoding, defaults, and the schema's checks. The value is of the block's implied type;
// unknown as a whole when the body has errors.
func (s scope) decode(body hcl.Body, info *blockInfo, refs []ref) (cty.Value, hcl.Diagnostics) {
	ctx, diags := s.context(refs)
	if diags.HasErrors() {
		return cty.UnknownVal(info.ty), diags
	}
	if info.nested {
		body = dynblock.Expand(body, ctx)
	}
	v, more := hcldec.Decode(body, info.spec, ctx)
	more = sorted(redact(more)) // hcldec goes through its specification in no order
	diags = append(diags, explainComputed(body, info, more)...)
	if more.HasErrors() {
		return cty.UnknownVal(info.ty), diags
	}
	if info.plain {
		return v, diags
	}
	f := finisher{scope: s, body: body, info: info, ctx: ctx, diags: diags}
	v = f.object(v, info, nil)
	if f.diags.HasErrors() {
		return cty.UnknownVal(info.ty), sorted(f.diags)
	}
	return v, sorted(f.diags)
}

// explainComputed says of an argument that is only exported that it is, where HCL says that it is not expected, and suggests block types where HCL
// does not.
func explainComputed(body hcl.Body, info *blockInfo, diags hcl.Diagnostics) hcl.Diagnostics {
	if !diags.HasErrors() {
		return diags
	}
	for _, d := range diags { // HCL suggests nothing for dynamic blocks
		if given, ok := strings.CutPrefix(d.Detail, `Blocks of type "`); ok && d.Summary == "Unsupported block type" && !strings.Contains(d.Detail, "Did you mean") {
			given, _, _ = strings.Cut(given, `"`)
			d.Detail += diagfmt.DidYouMean(given, info.blocks)
		}
	}
	sch := &hcl.BodySchema{}
	for _, name := range info.attributes {
		if a := info.block.Attributes[name]; a.Computed && !a.Optional && !a.Required {
			sch.Attributes = append(sch.Attributes, hcl.AttributeSchema{Name: name})
		}
	}
	content, _, _ := body.PartialContent(sch)
	if content == nil {
		return diags
	}
	for name, attr := range content.Attributes {
		for i, d := range diags {
			if d.Subject != nil && *d.Subject == attr.NameRange {
				diags[i] = errorAt(attr.NameRange, "Read-only argument", "%s cannot be set: it is a value that the resource reports once it is there.", name)
			}
		}
	}
	return diags
}

// finisher fills in defaults and runs the checks of a schema over a decoded value.
type finisher struct {
	scope scope
	body  hcl.Body
	info  *blockInfo
	ctx   *hcl.EvalContext
	diags hcl.Diagnostics
}

// object finishes an object of the block's implied type. Null and unknown objects stay.
func (f *finisher) object(v cty.Value, info *blockInfo, path cty.Path) cty.Value {
	v, marks := v.Unmark()
	switch {
	case v.IsNull():
		return cty.NullVal(info.ty).WithMarks(marks) // of the implied type, also where the body holds references
	case !v.IsKnown():
		return cty.UnknownVal(info.ty).WithMarks(marks)
	}
	vals := v.AsValueMap()
	same := true
	for _, name := range info.attributes {
		as := f.attribute(vals[name], name, info.block.Attributes[name], path)
		if as != cty.NilVal {
			vals[name], same = as, false
		}
	}
	for _, name := range info.blocks {
		n := info.block.Blocks[name]
		same = false
		at := append(slices.Clone(path), cty.GetAttrStep{Name: name})
		inner := f.scope.e.block(&n.Block)
		if v := vals[name]; n.Nesting == schema.List && (!v.IsKnown() || !v.IsNull() && v.LengthInt() == 0) {
			vals[name] = absent(v, cty.List(inner.ty))
			continue
		}
		vals[name] = eachObject(vals[name], n.Nesting, func(v cty.Value, step cty.PathStep) cty.Value {
			p := at
			if step != nil {
				p = append(slices.Clone(at), step)
			}
			return f.object(v, inner, p)
		})
	}
	if same {
		return v.WithMarks(marks)
	}
	return cty.ObjectVal(vals).WithMarks(marks)
}

// attribute checks a value. It returns what it is to be instead; NilVal: it stays as it is.
func (f *finisher) attribute(v cty.Value, name string, a *schema.Attribute, parent cty.Path) cty.Value {
	if a.Computed && !a.Optional && !a.Required {
		return cty.NilVal
	}
	report := func(severity hcl.DiagnosticSeverity, below cty.Path, summary, format string, args ...any) {
		path := append(append(slices.Clone(parent), cty.GetAttrStep{Name: name}), below...)
		f.report(severity, path, summary, fmt.Sprintf(format, args...))
	}
	if a.Reference != "" {
		return f.reference(v, name, a, report)
	}
	plain, marks := v.Unmark()
	if plain.IsNull() {
		switch {
		case a.Required:
			report(hcl.DiagError, nil, "Missing required argument", "%s is required, but its value here is null.", name)
		case a.Default != cty.NilVal:
			if d, err := convert.Convert(a.Default, a.Type); err == nil {
				return d.WithMarks(marks)
			}
			return a.Default.WithMarks(marks)
		}
		return cty.NilVal
	}
	if a.Deprecated != "" {
		report(hcl.DiagWarning, nil, "Deprecated argument", "%s is deprecated: %s", name, a.Deprecated)
	}
	if len(a.OneOf) > 0 || a.Validate != nil || a.Canonical != nil {
		f.check(v, name, a, report)
	}
	if a.Sensitive {
		return v.Mark(Sensitive)
	}
	return cty.NilVal
}

// absent is a list of blocks that is empty or unknown, with the implied type of its elements.
func absent(v cty.Value, ty cty.Type) cty.Value {
	v, marks := v.Unmark()
	if !v.IsKnown() {
		return cty.UnknownVal(ty).WithMarks(marks)
	}
	return cty.ListValEmpty(ty.ElementType()).WithMarks(marks)
}

// reporter files a diagnostic about a part of an attribute's value.
type reporter func(severity hcl.DiagnosticSeverity, below cty.Path, summary, format string, args ...any)

// check holds a value that is wholly known against the attribute's own rules.
func (f *finisher) check(v cty.Value, name string, a *schema.Attribute, report reporter) {
	deep, _ := v.UnmarkDeep()
	if !deep.IsWhollyKnown() {
		return
	}
	err := checkValue(deep, name, a)
	if err == nil {
		return
	}
	what, below := name, cty.Path(nil)
	err = inElement(deep, a, err)
	if at := (cty.PathError{}); errors.As(err, &at) {
		below = at.Path
		what += pathString(at.Path)
	}
	detail := fmt.Sprintf("Invalid value for %s: %s", what, sentence(err.Error()))
	if a.Sensitive || v.ContainsMarked() {
		detail = fmt.Sprintf("The value of %s is not valid. It is sensitive, so neither it nor the reason, which could tell it, is shown. %s", name, a.Description)
	}
	report(hcl.DiagError, below, "Invalid value", "%s", strings.TrimSpace(detail))
}

// checkValue holds a known value against the attribute's list, check and canonical form.
func checkValue(v cty.Value, name string, a *schema.Attribute) error {
	if len(a.OneOf) > 0 && v.Type() == cty.String && !slices.Contains(a.OneOf, v.AsString()) {
		return fmt.Errorf("%q is not one of %s.%s", v.AsString(), quoteList(a.OneOf), diagfmt.DidYouMean(v.AsString(), a.OneOf))
	}
	if a.Validate != nil {
		if err := a.Validate(v); err != nil {
			return err
		}
	}
	if a.Canonical != nil {
		if _, err := a.Canonical(v); err != nil {
			return err
		}
	}
	return nil
}

// inElement finds the element of a list that an error of the attribute's own check is about: the one that alone is refused with the same words.
func inElement(v cty.Value, a *schema.Attribute, err error) error {
	if at := (cty.PathError{}); errors.As(err, &at) || a.Validate == nil || !v.Type().IsListType() || v.LengthInt() < 2 {
		return err
	}
	for it := v.ElementIterator(); it.Next(); {
		i, e := it.Element()
		if alone := a.Validate(cty.ListVal([]cty.Value{e})); alone != nil && alone.Error() == err.Error() {
			return cty.Path{cty.IndexStep{Key: i}}.NewError(err)
		}
	}
	return err
}

// sentence ends a text with a full stop, unless it has an end.
func sentence(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".?!") {
		return s
	}
	return s + "."
}

func quoteList(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(out, ", ")
}

func (f *finisher) report(severity hcl.DiagnosticSeverity, path cty.Path, summary, detail string) {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail, Subject: AttributeRange(f.body, f.info.block, path)}
	if expr := attributeExpr(f.body, f.info.block, path); expr != nil {
		d.Expression, d.EvalContext = expr, f.ctx
	}
	f.diags = append(f.diags, d)
}

// conversionError prints a conversion error with the path of the part that it is about. It never holds a value.
func conversionError(err error) string {
	var p cty.PathError
	if errors.As(err, &p) && len(p.Path) > 0 {
		return strings.TrimPrefix(pathString(p.Path), ".") + ": " + p.Error()
	}
	return err.Error()
}

func pathString(path cty.Path) string {
	var b strings.Builder
	for _, s := range path {
		switch s := s.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + s.Name)
		case cty.IndexStep:
			switch {
			case !s.Key.IsKnown() || s.Key.IsMarked():
				b.WriteString("[...]")
			case s.Key.Type() == cty.String:
				fmt.Fprintf(&b, "[%q]", s.Key.AsString())
			case s.Key.Type() == cty.Number:
				fmt.Fprintf(&b, "[%s]", s.Key.AsBigFloat().Text('f', -1))
			default:
				b.WriteString("[...]")
			}
		}
	}
	return b.String()
}

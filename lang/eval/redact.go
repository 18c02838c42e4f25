package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// redact takes the reason out of errors of function calls that could have seen a sensitive value: functions work on values
// without marks and may quote them in their errors.
func redact(diags hcl.Diagnostics) hcl.Diagnostics {
	for i, d := range diags {
		extra, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
		if !ok || extra.FunctionCallError() == nil || !seesSensitive(d.Expression, d.EvalContext) {
			continue
		}
		hidden := *d
		hidden.Detail = fmt.Sprintf("The call of function %q failed. A sensitive value takes part in it, so the reason, which could show it, is left out.", extra.CalledFunctionName())
		hidden.Extra = nil
		diags[i] = &hidden
	}
	return diags
}

// seesSensitive says whether the expression refers to a sensitive value. When that cannot be told it does.
func seesSensitive(expr hcl.Expression, ctx *hcl.EvalContext) bool {
	if expr == nil {
		return true
	}
	for _, tr := range expr.Variables() {
		v, diags := tr.TraverseAbs(ctx)
		if diags.HasErrors() || isSensitive(v) {
			return true
		}
	}
	return usesSensitive(expr)
}

// usesSensitive says whether the expression itself calls sensitive().
func usesSensitive(expr hcl.Expression) bool {
	node, ok := expr.(hclsyntax.Node)
	if !ok {
		return true
	}
	found := false
	// The walk only looks, so it has no diagnostics.
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "sensitive" {
			found = true
		}
		return nil
	})
	return found
}

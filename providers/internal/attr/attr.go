// Package attr reads attributes of configuration objects. What is null or unknown reads as a default: schemas have told whether it may be.
package attr

import "github.com/zclconf/go-cty/cty"

// set is the attribute's value, if it is known and not null.
func set(obj cty.Value, name string) (cty.Value, bool) {
	v := obj.GetAttr(name)
	return v, v.IsKnown() && !v.IsNull()
}

// Text is a string; "" for null and unknown.
func Text(obj cty.Value, name string) string {
	if v, ok := set(obj, name); ok {
		return v.AsString()
	}
	return ""
}

// Spelled is a string in the form that canonical gives it: programs do not take every spelling that a configuration may have. "" for null and unknown, and for what is none, which
// validation has told.
func Spelled(obj cty.Value, name string, canonical func(cty.Value) (cty.Value, error)) string {
	if v, ok := set(obj, name); ok {
		if c, err := canonical(v); err == nil {
			return c.AsString()
		}
	}
	return ""
}

// Number is a whole number; def for null and unknown.
func Number(obj cty.Value, name string, def int64) int64 {
	if v, ok := set(obj, name); ok {
		n, _ := v.AsBigFloat().Int64()
		return n
	}
	return def
}

// Truth is a bool; def for null and unknown.
func Truth(obj cty.Value, name string, def bool) bool {
	if v, ok := set(obj, name); ok {
		return v.True()
	}
	return def
}

package funcs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// resolve finds a path that an expression gave. Relative ones begin at the module's folder; those that begin with
// that folder already, as "${path.module}/x" does when the module's folder is itself relative, are taken as they are.
func resolve(baseDir, p string) string {
	p, base := filepath.Clean(p), filepath.Clean(baseDir)
	if filepath.IsAbs(p) || p == base || strings.HasPrefix(p, base+string(filepath.Separator)) {
		return p
	}
	return filepath.Join(base, p)
}

func read(baseDir, p string) ([]byte, error) {
	b, err := os.ReadFile(resolve(baseDir, p))
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s; the path begins at the module's folder", resolve(baseDir, p))
	case errors.As(err, &pathErr):
		return nil, fmt.Errorf("read %s: %w", pathErr.Path, pathErr.Err)
	}
	return b, err
}

func readText(baseDir, p string) (string, error) {
	b, err := read(baseDir, p)
	if err == nil && !utf8.Valid(b) {
		return "", fmt.Errorf("%s is not a text in UTF-8; use filebase64 for other files", p)
	}
	return string(b), err
}

func fileFuncs(baseDir string) map[string]function.Function {
	out := map[string]function.Function{
		"file": stringFunc("Returns the content of a text file; relative paths begin at the module's folder.", "path", func(p string) (string, error) {
			return readText(baseDir, p)
		}),
		"filebase64": stringFunc("Returns the content of a file in base64.", "path", func(p string) (string, error) {
			b, err := read(baseDir, p)
			return base64.StdEncoding.EncodeToString(b), err
		}),
		"fileexists": function.New(&function.Spec{
			Description: "Says whether there is a file (not a folder) at the path.",
			Params:      []function.Parameter{{Name: "path", Type: cty.String}},
			Type:        function.StaticReturnType(cty.Bool),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				st, err := os.Stat(resolve(baseDir, args[0].AsString()))
				switch {
				case errors.Is(err, fs.ErrNotExist):
					return cty.False, nil
				case err != nil:
					return cty.UnknownVal(cty.Bool), function.NewArgError(0, err)
				case st.IsDir():
					return cty.UnknownVal(cty.Bool), function.NewArgErrorf(0, "%s is a folder, not a file", args[0].AsString())
				}
				return cty.True, nil
			},
		}),
		"fileset": filesetFunc(baseDir),
	}
	for _, h := range []string{"md5", "sha1", "sha256", "sha512", "base64sha256", "base64sha512"} {
		out["file"+h] = stringFunc("Returns the "+hashLabel(h)+" digest of a file's content"+hashForm(h)+".", "path", func(p string) (string, error) {
			b, err := read(baseDir, p)
			if err != nil {
				return "", err
			}
			return digest(h, b), nil
		})
	}
	return out
}

func filesetFunc(baseDir string) function.Function {
	return function.New(&function.Spec{
		Description: "Returns the set of files below a folder whose path from there matches a pattern: * and ? within a name, ** for any number of folders.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}, {Name: "pattern", Type: cty.String}},
		Type:        function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.Set(cty.String))
			dir, pattern := resolve(baseDir, args[0].AsString()), strings.Split(path.Clean(filepath.ToSlash(args[1].AsString())), "/")
			for _, part := range pattern {
				if _, err := path.Match(part, ""); err != nil {
					return unknown, function.NewArgErrorf(1, "%q is not a pattern", args[1].AsString())
				}
			}
			var found []cty.Value
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				rel, err := filepath.Rel(dir, p)
				if err == nil && matches(pattern, strings.Split(filepath.ToSlash(rel), "/")) {
					found = append(found, cty.StringVal(filepath.ToSlash(rel)))
				}
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return unknown, function.NewArgError(0, err)
			}
			if len(found) == 0 {
				return cty.SetValEmpty(cty.String), nil
			}
			return cty.SetVal(found), nil
		},
	})
}

func matches(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		for i := range len(name) + 1 {
			if matches(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return ok && err == nil && matches(pattern[1:], name[1:])
}

// templateFuncs are templatefile and templatestring; inside a template the functions of inner can be called.
func templateFuncs(baseDir string, inner map[string]function.Function) (file, str function.Function) {
	vars := function.Parameter{Name: "vars", Type: cty.DynamicPseudoType}
	file = function.New(&function.Spec{
		Description: "Evaluates the template in a file; the attributes of vars are its variables.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}, vars},
		Type:        function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			src, err := readText(baseDir, args[0].AsString())
			if err != nil {
				return cty.DynamicVal, function.NewArgError(0, err)
			}
			return render(src, args[0].AsString(), args[1], inner)
		},
	})
	str = function.New(&function.Spec{
		Description: "Evaluates the template in a string; the attributes of vars are its variables.",
		Params:      []function.Parameter{{Name: "template", Type: cty.String}, vars},
		Type:        function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return render(args[0].AsString(), "template", args[1], inner)
		},
	})
	return file, str
}

func render(src, name string, vars cty.Value, inner map[string]function.Function) (cty.Value, error) {
	if ty := vars.Type(); !ty.IsObjectType() && !ty.IsMapType() {
		return cty.DynamicVal, function.NewArgErrorf(1, "vars must be an object or map, not %s", ty.FriendlyName())
	}
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: inner}
	for k, v := range vars.AsValueMap() {
		if !hclsyntax.ValidIdentifier(k) {
			return cty.DynamicVal, function.NewArgErrorf(1, "%q is not a name for a variable of a template", k)
		}
		ctx.Variables[k] = v
	}
	expr, diags := hclsyntax.ParseTemplate([]byte(src), name, hcl.InitialPos)
	if !diags.HasErrors() {
		v, more := expr.Value(ctx)
		if !more.HasErrors() {
			return v, nil
		}
		diags = more
	}
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			return cty.DynamicVal, function.NewArgErrorf(0, "%s: %s: %s", d.Subject, d.Summary, d.Detail)
		}
	}
	return cty.DynamicVal, diags
}

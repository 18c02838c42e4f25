// Package funcs is the function table of the configuration language: Terraform's functions that are pure (no clock,
// no random, no environment: a plan must be repeatable) and a few for testbeds, in testbed.go.
//
// Functions get unknown arguments as in Terraform: the result is unknown, of a known type where that can be
// told. Marks, such as sensitive, go from every argument to the result.
package funcs

import (
	"maps"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Table returns the functions by name, for expressions of a module whose folder is baseDir: relative paths given
// to file and its kind begin there. sensitive is the mark that the functions sensitive, nonsensitive and issensitive deal in.
//
// The file functions read files when they are called; everything else depends on the arguments alone.
func Table(baseDir string, sensitive any) map[string]function.Function {
	t := pure()
	maps.Copy(t, fileFuncs(baseDir))
	t["sensitive"] = sensitiveFunc(sensitive)
	t["nonsensitive"] = nonsensitiveFunc(sensitive)
	t["issensitive"] = issensitiveFunc(sensitive)
	// Templates see every function but those that evaluate templates, so that they cannot go round in circles.
	t["templatefile"], t["templatestring"] = templateFuncs(baseDir, maps.Clone(t))
	return t
}

func pure() map[string]function.Function {
	return map[string]function.Function{
		"abs":             stdlib.AbsoluteFunc,
		"alltrue":         allTrueFunc(),
		"anytrue":         anyTrueFunc(),
		"base64decode":    base64DecodeFunc(),
		"base64encode":    base64EncodeFunc(),
		"base64sha256":    hashFunc("base64sha256"),
		"base64sha512":    hashFunc("base64sha512"),
		"basename":        basenameFunc(),
		"can":             describe(tryfunc.CanFunc, "Says whether the given expression can be evaluated without an error."),
		"ceil":            stdlib.CeilFunc,
		"chomp":           stdlib.ChompFunc,
		"chunklist":       stdlib.ChunklistFunc,
		"cidrhost":        cidrHostFunc(),
		"cidrnetmask":     cidrNetmaskFunc(),
		"cidrsubnet":      cidrSubnetFunc(),
		"cidrsubnets":     cidrSubnetsFunc(),
		"coalesce":        coalesceFunc(),
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          stdlib.ConcatFunc,
		"contains":        stdlib.ContainsFunc,
		"cpulist":         cpuListFunc(),
		"cpumask":         cpuMaskFunc(),
		"cpuset":          cpuSetFunc(),
		"csvdecode":       stdlib.CSVDecodeFunc,
		"dirname":         dirnameFunc(),
		"distinct":        stdlib.DistinctFunc,
		"element":         stdlib.ElementFunc,
		"endswith":        predicate("Says whether the string ends with the given suffix.", "suffix", endsWith),
		"flatten":         stdlib.FlattenFunc,
		"floor":           stdlib.FloorFunc,
		"format":          stdlib.FormatFunc,
		"formatdate":      stdlib.FormatDateFunc,
		"formatlist":      stdlib.FormatListFunc,
		"indent":          stdlib.IndentFunc,
		"index":           indexFunc(),
		"join":            stdlib.JoinFunc,
		"jsondecode":      stdlib.JSONDecodeFunc,
		"jsonencode":      stdlib.JSONEncodeFunc,
		"keys":            stdlib.KeysFunc,
		"length":          lengthFunc(),
		"linerate":        lineRateFunc(),
		"log":             stdlib.LogFunc,
		"lookup":          lookupFunc(),
		"lower":           stdlib.LowerFunc,
		"mac":             macFunc(),
		"matchkeys":       matchKeysFunc(),
		"max":             stdlib.MaxFunc,
		"md5":             hashFunc("md5"),
		"merge":           stdlib.MergeFunc,
		"min":             stdlib.MinFunc,
		"one":             oneFunc(),
		"parseint":        stdlib.ParseIntFunc,
		"pci":             pciFunc(),
		"pow":             stdlib.PowFunc,
		"range":           stdlib.RangeFunc,
		"regex":           stdlib.RegexFunc,
		"regexall":        stdlib.RegexAllFunc,
		"replace":         replaceFunc(),
		"reverse":         stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc,
		"setproduct":      stdlib.SetProductFunc,
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        stdlib.SetUnionFunc,
		"sha1":            hashFunc("sha1"),
		"sha256":          hashFunc("sha256"),
		"sha512":          hashFunc("sha512"),
		"signum":          stdlib.SignumFunc,
		"slice":           stdlib.SliceFunc,
		"sort":            stdlib.SortFunc,
		"split":           stdlib.SplitFunc,
		"startswith":      predicate("Says whether the string begins with the given prefix.", "prefix", startsWith),
		"strcontains":     predicate("Says whether the string has the given string in it.", "substr", contains),
		"strrev":          stdlib.ReverseFunc,
		"substr":          stdlib.SubstrFunc,
		"sum":             sumFunc(),
		"timeadd":         stdlib.TimeAddFunc,
		"timecmp":         timeCmpFunc(),
		"title":           stdlib.TitleFunc,
		"tobool":          to(cty.Bool, "Converts the value to a bool: true, false, \"true\" or \"false\"."),
		"tolist":          to(cty.List(cty.DynamicPseudoType), "Converts a set or tuple to a list."),
		"tomap":           to(cty.Map(cty.DynamicPseudoType), "Converts an object to a map."),
		"tonumber":        to(cty.Number, "Converts the value to a number."),
		"toset":           to(cty.Set(cty.DynamicPseudoType), "Converts a list or tuple to a set: no order, no repetition."),
		"tostring":        to(cty.String, "Converts a number or bool to a string."),
		"transpose":       transposeFunc(),
		"trim":            stdlib.TrimFunc,
		"trimprefix":      stdlib.TrimPrefixFunc,
		"trimspace":       stdlib.TrimSpaceFunc,
		"trimsuffix":      stdlib.TrimSuffixFunc,
		"try":             describe(tryfunc.TryFunc, "Returns the first of its arguments that can be evaluated without an error."),
		"upper":           stdlib.UpperFunc,
		"urldecode":       urlDecodeFunc(),
		"urlencode":       urlEncodeFunc(),
		"values":          stdlib.ValuesFunc,
		"yamldecode":      describe(ctyyaml.YAMLDecodeFunc, "Parses a YAML document to a value."),
		"yamlencode":      describe(ctyyaml.YAMLEncodeFunc, "Prints a value as a YAML document."),
		"zipmap":          stdlib.ZipmapFunc,
	}
}

// to converts to a type.
func to(ty cty.Type, description string) function.Function {
	return describe(stdlib.MakeToFunc(ty), description)
}

// describe gives a function of a library the description that it lacks.
func describe(f function.Function, description string) function.Function {
	params := f.Params()
	descriptions := make([]string, 0, len(params)+1)
	for _, p := range params {
		descriptions = append(descriptions, p.Description)
	}
	if v := f.VarParam(); v != nil {
		descriptions = append(descriptions, v.Description)
	}
	return f.WithNewDescriptions(description, descriptions)
}

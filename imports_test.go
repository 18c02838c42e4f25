package plumb_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// rule forbids imports. A package is covered when its path is in, or below, one of In and in none of Except.
type rule struct {
	why    string
	in     []string
	except []string
	forbid []string // import paths; a trailing slash covers all below
}

// rules are the import rules of docs/architecture.md.
var rules = []rule{
	{
		why:    "lang imports nothing of ours but lang: it is pure",
		in:     []string{"lang"},
		forbid: []string{"plumb/providers", "plumb/providers/", "plumb/stages/", "plumb/cmd/", "net", "net/http", "os/exec"},
	},
	{
		why:    "providers know neither stages nor the command line",
		in:     []string{"providers"},
		forbid: []string{"plumb/stages/", "plumb/cmd/"},
	},
	{
		why:    "stages know providers only by the contract in package providers",
		in:     []string{"stages"},
		forbid: []string{"plumb/providers/", "plumb/cmd/"},
	},
	{
		why:    "only the transport starts processes: everything else goes through Conn",
		in:     []string{"lang", "providers", "stages"},
		except: []string{"providers/internal/transport"},
		forbid: []string{"os/exec"},
	},
	{
		why:    "only the transport speaks SSH",
		in:     []string{"."},
		except: []string{"providers/internal/transport"},
		forbid: []string{"golang.org/x/crypto/ssh", "golang.org/x/crypto/ssh/"},
	},
}

// providerPackages may be imported by the listed ones only: one provider never imports another.
var sharedProviders = []string{"providers/internal", "providers/builtin", "providers/fake", "providers/conformance", "providers/labhost"}

func TestImportRules(t *testing.T) {
	walk(t, func(file, pkg string, test bool, f *ast.File) {
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			for _, r := range rules {
				if test && path == "os/exec" {
					continue // tests start the real thing to compare with
				}
				if test && pkg == "stages/bench/search" && path == "plumb/providers/dummy" {
					continue // searches are driven by the model
				}
				if covers(r.in, pkg) && !covers(r.except, pkg) && forbidden(r.forbid, path) {
					t.Errorf("%s imports %s: %s", file, path, r.why)
				}
			}
			if from, to := providerOf(pkg), providerOf(strings.TrimPrefix(path, "plumb/")); !test && from != "" && to != "" && from != to {
				t.Errorf("%s imports %s: providers never import one another; share in providers/internal", file, path)
			}
		}
	})
}

func TestNoInit(t *testing.T) {
	walk(t, func(file, _ string, _ bool, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function: list things explicitly", file)
			}
		}
	})
}

// calls that reach around the injected environment, and what to use.
var injected = map[string]string{
	"os.Getenv":    "the environment given by cmd/plumb",
	"os.Stdout":    "the writer given by cmd/plumb",
	"os.Stderr":    "the writer given by cmd/plumb",
	"os.Exit":      "an error: only main exits",
	"time.Sleep":   "a wait for the condition, with a limit",
	"time.Now":     "the Now that is passed in",
	"log.Print":    "the Log that is passed in",
	"log.Printf":   "the Log that is passed in",
	"exec.Command": "providers.Conn",
}

// clockOK may read the clock: they measure, or set deadlines of their own connections.
var clockOK = []string{"providers", "cmd"}

func TestInjectedEnvironment(t *testing.T) {
	walk(t, func(file, pkg string, test bool, f *ast.File) {
		if test || !covers([]string{"lang", "providers", "stages"}, pkg) || covers([]string{"providers/internal/transport", "providers/labhost"}, pkg) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || x.Obj != nil {
				return true
			}
			name := x.Name + "." + sel.Sel.Name
			if name == "time.Now" && covers(clockOK, pkg) {
				return true
			}
			if use, bad := injected[name]; bad {
				t.Errorf("%s uses %s: use %s", file, name, use)
			}
			return true
		})
	})
}

func walk(t *testing.T, visit func(file, pkg string, test bool, f *ast.File)) {
	t.Helper()
	files := 0
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		files++
		visit(path, filepath.ToSlash(filepath.Dir(path)), strings.HasSuffix(path, "_test.go"), f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("only %d Go files seen: the rules were not checked", files)
	}
}

func covers(dirs []string, pkg string) bool {
	for _, d := range dirs {
		if d == "." || pkg == d || strings.HasPrefix(pkg, d+"/") {
			return true
		}
	}
	return false
}

func forbidden(list []string, path string) bool {
	for _, f := range list {
		if path == f || strings.HasSuffix(f, "/") && strings.HasPrefix(path, f) {
			return true
		}
	}
	return false
}

// providerOf is the provider folder a package belongs to; "" for what is not one, or is shared.
func providerOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, "providers/")
	if !ok || covers(sharedProviders, pkg) {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

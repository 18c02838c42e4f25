package settings

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/host"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

// aptRoot is this machine with an apt and a dpkg that look at a folder in place of "/": real programs, and no package of the machine in reach.
type aptRoot struct {
	providers.Conn
	env []string
}

func (c aptRoot) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	cmd.Env = append(cmd.Env, c.env...)
	return c.Conn.Run(ctx, cmd)
}

// newAptRoot makes the folder, with a repository of four packages in it.
func newAptRoot(t *testing.T) func(*testing.T) providers.Host {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"etc/apt/sources.list.d", "etc/apt/preferences.d", "etc/apt/apt.conf.d", "etc/apt/trusted.gpg.d", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers",
		"var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt", "repo"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("var/lib/dpkg/status", "")
	write("var/lib/dpkg/available", "")
	write("etc/apt/sources.list", "deb [trusted=yes] file:"+dir+"/repo ./\n")
	write("apt.conf", fmt.Sprintf("Dir %q;\nDir::State::status %q;\nDir::Bin::dpkg \"/usr/bin/dpkg\";\nDPkg::Options {%q;%q;};\nAPT::Sandbox::User \"root\";\n",
		dir, dir+"/var/lib/dpkg/status", "--root="+dir, "--log="+dir+"/dpkg.log"))

	h := local(t)
	defer h.Close()
	var index strings.Builder
	for _, p := range []struct{ name, version, needs string }{{"plt-a", "1.0", "plt-b"}, {"plt-b", "1.0", ""}, {"plt-c", "1.0", ""}, {"plt-c", "2.0", ""}} {
		control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: a package of a test\n", p.name, p.version)
		if p.needs != "" {
			control += "Depends: " + p.needs + "\n"
		}
		write("build/DEBIAN/control", control)
		deb := fmt.Sprintf("%s_%s_all.deb", p.name, p.version)
		do(t, h, "dpkg-deb", "--build", filepath.Join(dir, "build"), filepath.Join(dir, "repo", deb))
		data, err := os.ReadFile(filepath.Join(dir, "repo", deb))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&index, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", control, deb, len(data), sha256.Sum256(data))
	}
	write("repo/Packages", index.String())
	env := []string{"APT_CONFIG=" + dir + "/apt.conf", "DPKG_ADMINDIR=" + dir + "/var/lib/dpkg"}
	return func(*testing.T) providers.Host {
		return hostkit.New("local", aptRoot{transport.NewLocal("local"), env}, host.Gather)
	}
}

func TestRealPackage(t *testing.T) {
	real(t)
	open := newAptRoot(t)
	h := open(t)
	defer h.Close()
	// apt knows nothing yet: the package is not found, the lists are fetched, and it is.
	before, err := create(t, Package{}, h, attrs{"names": strs("plt-c")})
	if err != nil {
		t.Fatal(err)
	}
	installed := func(t *testing.T, h providers.Host) []string {
		lines := strings.Split(do(t, h, "dpkg-query", "-W", "-f", `${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\n`), "\n")
		_, err := os.Stat("/usr/sbin/policy-rc.d")
		return append(lines, do(t, h, "apt-mark", "showauto"), fmt.Sprint("policy: ", err))
	}
	if got := installed(t, h); got[0] != "plt-c 2.0 install installed" {
		t.Fatalf("%q", got)
	}
	conformance.Run(t, conformance.Case{
		Type: Package{}, Open: open, Snapshot: installed,
		Config: attrs{"names": strs("plt-a", "plt-c=1.0"), "allow_downgrade": cty.True},
		Update: attrs{"names": strs("plt-b", "plt-c")},
		Drift: map[string]func(*testing.T, providers.Host){
			"removed": func(t *testing.T, h providers.Host) { do(t, h, "apt-get", "-y", "purge", "--", "plt-a") },
		},
	})
	wantProblem(t, planOf(t, Package{}, h, attrs{"names": strs("plt-c=1.0")}), "2.0", "allow_downgrade")
	_, err = create(t, Package{}, h, attrs{"names": strs("plt-none")})
	wantError(t, err, "Unable to locate package plt-none")
	before.Prior, before.Planned = before.Planned, cty.NullVal(before.Planned.Type())
	if _, err := (Package{}).Apply(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if got := installed(t, h); got[0] != "" {
		t.Errorf("%q", got)
	}
}

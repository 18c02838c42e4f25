package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// Package is host_package: packages of the distribution that are installed.
type Package struct{}

var (
	_ providers.Resource = Package{}
	_ providers.Preparer = Package{}
	_ providers.Planner  = Package{}
	_ providers.Claimer  = Package{}
)

// Schema is constant.
func (Package) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "host_package",
		Description: "Packages of the distribution, by apt or dnf, without those that they only recommend. Nothing is ever removed to make room for them. Destroy removes what was installed for them, " +
			"packages that they need included, unless something else needs it; what was there before stays.",
		Example: `resource "host_package" "tools" {
  names = ["ethtool", "tuned"]
}`,
		Setting:  true,
		Survives: true,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"names": {Type: cty.List(cty.String), Required: true, Validate: each(validPackage),
				Description: "Names, or NAME=VERSION for one version (with the release: 3.1.0-2+deb12u1). apt holds a version that is given (apt-mark hold) until destroy; dnf has no hold of its own."},
			"allow_downgrade": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Whether a version may replace a newer one."},
			"start_services": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Whether Debian's packages may start their services when they are installed (policy-rc.d, invoke-rc.d(8)). A policy that the host has already stays in force. dnf starts none."},
			"timeout": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1800), Validate: schema.Whole(1, 86400),
				Description: "Seconds that downloading and installing may take."},
		}},
	}
}

func validPackage(v cty.Value) error {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._:-]*(=[A-Za-z0-9][A-Za-z0-9+.:~^_-]*)?$`).MatchString(v.AsString()) {
		return fmt.Errorf("%q is not a package or NAME=VERSION", v.AsString())
	}
	return nil
}

// installedPackage is a package that is there.
type installedPackage struct {
	version string
	held    bool
}

// packages is what is installed on a host, by name and by NAME:ARCH.
type packages struct {
	dnf  bool
	have map[string]installedPackage
}

// right says that a wanted package is there in its version.
func (p *packages) right(want string) bool {
	name, version, fixed := strings.Cut(want, "=")
	have, there := p.have[name]
	return there && (!fixed || sameVersion(version, have.version) && (p.dnf || have.held))
}

// sameVersion takes a version without its epoch of 0 for the same; rpm names every epoch.
func sameVersion(want, have string) bool {
	return want == have || "0:"+want == have
}

type packagesKey struct{}

func packagesOf(ctx context.Context, h providers.Host) (*cache[*packages], *packages, error) {
	c, err := cacheOf[*packages](ctx, h, packagesKey{})
	if err != nil {
		return nil, nil, err
	}
	p, err := c.get(ctx, func(ctx context.Context) (*packages, error) { return readPackages(ctx, h) })
	return c, p, err
}

// readPackages lists all that is installed, in one command on Debian's family and two on Red Hat's.
func readPackages(ctx context.Context, h providers.Host) (*packages, error) {
	out, err := run(ctx, h, "dpkg-query", "-W", "-f", `${Package}\t${Architecture}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\n`)
	if err == nil {
		return parsePackages(out, false), nil
	}
	if status, exited := exited(err); !exited || status != 127 {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	out, err = run(ctx, h, "rpm", "-qa", "--qf", `%{NAME}\t%{ARCH}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\tinstall\tinstalled\n`)
	if status, exited := exited(err); exited && status == 127 {
		return nil, errNoManager
	}
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	return parsePackages(out, true), nil
}

var errNoManager = fmt.Errorf("the host has neither dpkg-query nor rpm: host_package knows the families of Debian and Red Hat")

// parsePackages reads lines NAME, ARCH, VERSION, WANT, STATUS separated by tabs.
func parsePackages(out string, dnf bool) *packages {
	p := &packages{dnf: dnf, have: map[string]installedPackage{}}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 || f[4] != "installed" {
			continue
		}
		i := installedPackage{version: f[2], held: f[3] == "hold"}
		p.have[f[0]] = i
		p.have[f[0]+":"+f[1]] = i
	}
	return p
}

// Read reports those of the names that are installed, with the version that is there where another one is wanted.
func (Package) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	_, p, err := packagesOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	names, _ := texts(req.Prior, "names")
	var now []string
	for _, want := range names {
		name, _, _ := strings.Cut(want, "=")
		have, there := p.have[name]
		switch {
		case p.right(want):
			now = append(now, want)
		case there && sameVersion(strings.TrimPrefix(want, name+"="), have.version): // not held
			now = append(now, name)
		case there:
			now = append(now, name+"="+have.version)
		}
	}
	return providers.ReadResult{Current: with(req.Prior, map[string]cty.Value{"names": textList(now)})}, nil
}

// Plan finds a host without a package manager that is known, and a downgrade.
func (Package) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil || f == nil || unchanged(req) {
		return res, err
	}
	names, known := texts(req.Proposed, "names")
	if !known {
		return res, nil
	}
	_, p, err := packagesOf(ctx, req.Host)
	if err != nil {
		if err == errNoManager {
			res.Problems = append(res.Problems, providers.Problem{Host: req.Host.Name(), Summary: "No package manager", Detail: req.Host.Name() + ": " + err.Error() + "."})
			return res, nil
		}
		return res, err
	}
	for i, want := range names {
		name, version, fixed := strings.Cut(want, "=")
		have, there := p.have[name]
		if !fixed || !there || sameVersion(version, have.version) || attr.Truth(req.Proposed, "allow_downgrade", false) {
			continue
		}
		older, err := p.older(ctx, req.Host, version, have.version)
		if err != nil {
			return res, err
		}
		if older {
			pr := problem("", "Downgrade", "%s of %s is %s, which is newer than %s. Set allow_downgrade = true if that is meant.", name, req.Host.Name(), have.version, version)
			pr.Path = cty.GetAttrPath("names").IndexInt(i)
			res.Problems = append(res.Problems, pr)
		}
	}
	return res, nil
}

// older says whether version a comes before b.
func (p *packages) older(ctx context.Context, h providers.Host, a, b string) (bool, error) {
	if p.dnf {
		return compareRPM(a, b) < 0, nil
	}
	_, err := run(ctx, h, "dpkg", "--compare-versions", a, "lt", b)
	if status, exited := exited(err); exited && status == 1 {
		return false, nil
	}
	return err == nil, err
}

// Claims says that each package is one instance's.
func (Package) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	names, _ := texts(planned, "names")
	var c providers.Claims
	for i, n := range names {
		name, _, _ := strings.Cut(n, "=")
		c.Unique = append(c.Unique, providers.Unique{Scope: "package", Value: name, Path: cty.GetAttrPath("names").IndexInt(i)})
	}
	return c, nil
}

// undoPackage is what was found.
type undoPackage struct {
	Names    []string          `json:"names"`              // managed packages; one that was dropped stays until it is gone
	Before   packed            `json:"before"`             // names of all that was installed
	Versions map[string]string `json:"versions,omitempty"` // of managed packages that were there
	Held     []string          `json:"held,omitempty"`     // managed packages that were held
	Auto     []string          `json:"auto,omitempty"`     // managed packages that were there for others only (apt-mark)
}

// Prepare records what is installed.
func (Package) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := recorded[undoPackage](req.Undo)
	if err != nil {
		return nil, err
	}
	c, err := cacheOf[*packages](ctx, req.Host, packagesKey{})
	if err != nil {
		return nil, err
	}
	c.drop()
	_, p, err := packagesOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	if len(req.Undo) == 0 {
		u = undoPackage{Before: packed{}, Versions: map[string]string{}}
		for name := range p.have {
			if !strings.Contains(name, ":") {
				u.Before[name] = true
			}
		}
	}
	names, _ := texts(req.Planned, "names")
	u.Names = slices.DeleteFunc(u.Names, func(name string) bool { _, there := p.have[name]; return !there })
	var there []string
	for _, n := range names {
		name, _, _ := strings.Cut(n, "=")
		if !slices.Contains(u.Names, name) {
			u.Names = append(u.Names, name)
		}
		have, is := p.have[name]
		if _, noted := u.Versions[name]; !is || noted || !u.Before[bare(name)] {
			continue
		}
		if u.Versions == nil {
			u.Versions = map[string]string{}
		}
		u.Versions[name] = have.version
		there = append(there, name)
		if have.held {
			u.Held = append(u.Held, name)
		}
	}
	if !p.dnf && len(there) > 0 {
		out, err := run(ctx, req.Host, append([]string{"apt-mark", "showauto", "--"}, there...)...)
		if err != nil {
			return nil, fmt.Errorf("find out which packages are there for others: %w", err)
		}
		u.Auto = append(u.Auto, strings.Fields(out)...)
	}
	return json.Marshal(u)
}

// bare is a name without its architecture.
func bare(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return name
}

// Apply installs, or removes what was installed.
func (Package) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := recorded[undoPackage](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c, err := cacheOf[*packages](ctx, req.Host, packagesKey{})
	if err != nil {
		return providers.ApplyResult{}, err
	}
	of := req.Planned
	if of.IsNull() {
		of = req.Prior
	}
	i := installer{host: req.Host, cache: c, log: req.Log, limit: time.Duration(attr.Number(of, "timeout", 1800)) * time.Second,
		downgrade: attr.Truth(of, "allow_downgrade", false), services: attr.Truth(of, "start_services", false)}
	// One at a time: they have one lock.
	v, err := req.Host.Shared(ctx, installKey{}, func(context.Context) (any, error) { return newToken(), nil })
	if err != nil {
		return providers.ApplyResult{}, err
	}
	defer v.(token).take()()
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, i.restore(ctx, nil, u)
	}
	names, _ := texts(req.Planned, "names")
	if err := i.install(ctx, names, true); err != nil {
		return providers.ApplyResult{}, err
	}
	// What the configuration names no longer goes as destroy would have it.
	return providers.ApplyResult{New: req.Planned}, i.restore(ctx, names, u)
}

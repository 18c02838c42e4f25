package settings

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"plumb/providers"
)

type installKey struct{}

// token lets one instance of a host install at a time.
type token chan struct{}

func newToken() token {
	t := make(token, 1)
	t <- struct{}{}
	return t
}

func (t token) take() (release func()) {
	<-t
	return func() { t <- struct{}{} }
}

// installer installs and removes packages on one host.
type installer struct {
	host                providers.Host
	cache               *cache[*packages]
	log                 func(string)
	limit               time.Duration
	downgrade, services bool
}

// look reads what is installed now.
func (i installer) look(ctx context.Context) (*packages, error) {
	i.cache.drop()
	return i.cache.get(ctx, func(ctx context.Context) (*packages, error) { return readPackages(ctx, i.host) })
}

// aptScript keeps Debian's packages from starting their services while the given command runs: by a policy-rc.d that is in force only while this very
// process lives, so that one which is left behind by a power cut forbids nothing. One that the host has of its own is its policy, and stays.
const aptScript = `p=/usr/sbin/policy-rc.d
if [ ! -e "$p" ] || grep -q "^# Written by Plumb" "$p"; then
	started=$(cut -d" " -f22 "/proc/$$/stat") || exit 1
	trap 'rm -f "$p"' EXIT
	trap 'exit 143' HUP INT TERM
	printf '#!/bin/sh\n# Written by Plumb: services are not started while it installs packages.\n[ "$(cut -d" " -f22 /proc/%s/stat 2>/dev/null)" = %s ] && exit 101\nexit 0\n' "$$" "$started" >"$p.plumb" &&
		chmod 755 "$p.plumb" && mv "$p.plumb" "$p" || exit 1
fi
"$@"`

// apt runs apt-get. Locks of others are waited for.
func (i installer) apt(ctx context.Context, quiet bool, args ...string) (string, error) {
	cmd := append([]string{"apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
		"-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30"}, args...)
	if quiet {
		cmd = append([]string{"sh", "-c", aptScript, "plumb-apt"}, cmd...)
	}
	res, err := i.host.Conn().Run(ctx, providers.Cmd{Args: cmd, Timeout: i.limit,
		Env: []string{"DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1", "APT_LISTCHANGES_FRONTEND=none"}})
	if _, exited := exited(err); exited {
		return string(res.Stdout), fmt.Errorf("%w\n%s", err, lastLines(string(res.Stdout)+string(res.Stderr), 12))
	}
	return string(res.Stdout), err
}

// notFound are apt's words for lists of packages that are missing or too old.
func notFound(text string) bool {
	return regexp.MustCompile(`Unable to locate package|has no installation candidate|Version '[^']*' for '[^']*' was not found|404 +Not Found|Failed to fetch|no installation candidate`).MatchString(text)
}

// install installs what is missing or has another version, and with hold sees that apt keeps the versions that are given.
func (i installer) install(ctx context.Context, names []string, hold bool) error {
	p, err := i.look(ctx)
	if err != nil {
		return err
	}
	var missing, pinned, manual []string
	for _, want := range names {
		name, version, fixed := strings.Cut(want, "=")
		have, there := p.have[name]
		switch {
		case !there || fixed && !sameVersion(version, have.version):
			missing = append(missing, want)
		default:
			manual = append(manual, name)
		}
		if fixed && hold {
			pinned = append(pinned, name)
		}
	}
	if len(missing) > 0 {
		i.log(fmt.Sprintf("installs %s on %s", strings.Join(missing, ", "), i.host.Name()))
		if p.dnf {
			err = i.installDNF(ctx, missing)
		} else {
			err = i.installAPT(ctx, missing)
		}
		if err != nil {
			return err
		}
	}
	if !p.dnf {
		// Those that were there for others must not go with them.
		if err := i.marks(ctx, "manual", manual); err != nil {
			return err
		}
		if err := i.marks(ctx, "hold", pinned); err != nil {
			return err
		}
	}
	if len(missing) == 0 && len(pinned) == 0 {
		return nil
	}
	if p, err = i.look(ctx); err != nil {
		return err
	}
	for _, want := range names {
		name, version, fixed := strings.Cut(want, "=")
		if have, there := p.have[name]; !there || fixed && !sameVersion(version, have.version) || hold && !p.right(want) {
			return fmt.Errorf("package %s: its installation reported success, and the host has %q of it", want, p.have[name].version)
		}
	}
	return nil
}

func (i installer) marks(ctx context.Context, mark string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if _, err := run(ctx, i.host, append([]string{"apt-mark", mark, "--"}, names...)...); err != nil {
		return fmt.Errorf("mark packages %s as %s: %w", strings.Join(names, ", "), mark, err)
	}
	return nil
}

func (i installer) installAPT(ctx context.Context, missing []string) error {
	args := []string{"--no-install-recommends", "--no-remove"}
	if i.downgrade {
		args = append(args, "--allow-downgrades")
	}
	if slices.ContainsFunc(missing, func(n string) bool { return strings.Contains(n, "=") }) {
		args = append(args, "--allow-change-held-packages") // those that we held
	}
	args = append(append(args, "install", "--"), missing...)
	fresh, err := run(ctx, i.host, "find", "/var/lib/apt/lists/partial", "-maxdepth", "0", "-mtime", "-1")
	if _, exited := exited(err); err != nil && !exited {
		return err
	}
	updated := strings.TrimSpace(fresh) == ""
	if updated {
		i.update(ctx)
	}
	for range 3 {
		_, err = i.apt(ctx, !i.services, args...)
		switch {
		case err == nil:
			return nil
		case strings.Contains(err.Error(), "dpkg --configure -a"):
			// A dpkg that was killed, maybe ours.
			if _, err := i.host.Conn().Run(ctx, providers.Cmd{Args: []string{"dpkg", "--force-confdef", "--force-confold", "--configure", "-a"}, Env: []string{"DEBIAN_FRONTEND=noninteractive"}, Timeout: i.limit}); err != nil {
				return fmt.Errorf("finish what a dpkg that was killed began: %w", err)
			}
		case notFound(err.Error()) && !updated:
			updated = true
			i.update(ctx)
		default:
			return fmt.Errorf("install %s: %w", strings.Join(missing, ", "), err)
		}
	}
	return fmt.Errorf("install %s: %w", strings.Join(missing, ", "), err)
}

// update gets the lists of packages anew. Without a network that fails, and what is known already may do: the installation tells.
func (i installer) update(ctx context.Context) {
	if _, err := i.apt(ctx, false, "update"); err != nil {
		i.log(fmt.Sprintf("%s: apt-get update failed, and the installation goes on with the lists that there are: %v", i.host.Name(), err))
	}
}

// installDNF installs by dnf, which does one transaction or none.
func (i installer) installDNF(ctx context.Context, missing []string) error {
	args := []string{"dnf", "-y", "-q", "--setopt=install_weak_deps=False", "install", "--"}
	for _, m := range missing {
		args = append(args, strings.Replace(m, "=", "-", 1))
	}
	res, err := i.host.Conn().Run(ctx, providers.Cmd{Args: args, Timeout: i.limit})
	if err != nil {
		return fmt.Errorf("install %s: %w\n%s", strings.Join(missing, ", "), err, lastLines(string(res.Stdout)+string(res.Stderr), 12))
	}
	return nil
}

// restore takes back what was done for the managed packages that are not in keep.
func (i installer) restore(ctx context.Context, keep []string, u undoPackage) error {
	p, err := i.look(ctx)
	if err != nil {
		return err
	}
	stay, pinned := map[string]bool{}, map[string]bool{}
	for _, k := range keep {
		name, _, fixed := strings.Cut(k, "=")
		stay[name], pinned[name] = true, fixed
	}
	var ours, unhold, auto, back []string
	installed := false // something that may have brought others along
	for _, name := range u.Names {
		have, there := p.have[name]
		if have.held && !pinned[name] && !slices.Contains(u.Held, name) {
			unhold = append(unhold, name)
		}
		if stay[name] {
			continue
		}
		installed = installed || !u.Before[bare(name)]
		if !there {
			continue
		}
		if !u.Before[bare(name)] {
			ours = append(ours, name)
			continue
		}
		if slices.Contains(u.Auto, name) {
			auto = append(auto, name)
		}
		if v := u.Versions[name]; v != "" && v != have.version {
			back = append(back, name+"="+v)
		}
	}
	if !p.dnf {
		if err := errors.Join(i.marks(ctx, "unhold", unhold), i.marks(ctx, "auto", auto)); err != nil {
			return err
		}
	}
	if len(back) > 0 {
		i.downgrade = true
		if err := i.install(ctx, back, false); err != nil {
			return fmt.Errorf("put back the versions that were found: %w", err)
		}
	}
	if !installed {
		return nil
	}
	if len(ours) > 0 {
		i.log(fmt.Sprintf("removes %s from %s", strings.Join(ours, ", "), i.host.Name()))
	}
	if p.dnf {
		return i.removeDNF(ctx, ours, u.Before)
	}
	return i.removeAPT(ctx, ours, u.Before)
}

// removals are the packages that apt-get -s says it would remove.
func removals(out string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:Remv|Purg) (\S+)`).FindAllStringSubmatch(out, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// removeAPT gives packages up: they are there for others only from now on, and what nothing needs any more and was not there before is removed. What is
// recommended is not needed. A package that others need by now stays, and goes with them.
func (i installer) removeAPT(ctx context.Context, ours []string, before packed) error {
	defer i.cache.drop()
	if err := i.marks(ctx, "auto", ours); err != nil {
		return err
	}
	for range maxSteps {
		out, err := i.apt(ctx, false, "-o", "APT::AutoRemove::RecommendsImportant=false", "-o", "APT::AutoRemove::SuggestsImportant=false", "-s", "autoremove")
		if err != nil {
			return err
		}
		unneeded := slices.DeleteFunc(removals(out), func(n string) bool { return before[bare(n)] })
		if len(unneeded) == 0 { // apt never removes some by itself, kernels and their modules
			if unneeded, err = i.alone(ctx, ours); err != nil || len(unneeded) == 0 {
				return err
			}
		}
		if _, err := i.apt(ctx, true, append([]string{"purge", "--"}, unneeded...)...); err != nil {
			return fmt.Errorf("remove %s: %w", strings.Join(unneeded, ", "), err)
		}
	}
	return errSteps
}

// maxSteps is far more than chains of dependencies are long.
const maxSteps = 100

var errSteps = fmt.Errorf("removing packages does not come to an end after %d steps", maxSteps)

// alone is a package of ours that is still there and whose removal would remove nothing else; none when there is none. What others need is logged.
func (i installer) alone(ctx context.Context, ours []string) ([]string, error) {
	p, err := i.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range ours {
		if _, there := p.have[name]; !there {
			continue
		}
		out, err := i.apt(ctx, false, "-s", "purge", "--", name)
		if err != nil {
			return nil, err
		}
		others := slices.DeleteFunc(removals(out), func(n string) bool { return bare(n) == bare(name) })
		if len(others) == 0 {
			return []string{name}, nil
		}
		i.log(fmt.Sprintf("%s stays on %s: %s need it", name, i.host.Name(), strings.Join(others, ", ")))
	}
	return nil, nil
}

// removeDNF removes by rpm, which never removes what others need: that stays.
func (i installer) removeDNF(ctx context.Context, ours []string, before packed) error {
	defer i.cache.drop()
	for steps, again := 0, true; again; steps++ {
		if steps == maxSteps {
			return errSteps
		}
		again = false
		for _, name := range ours {
			_, err := i.host.Conn().Run(ctx, providers.Cmd{Args: []string{"rpm", "-e", "--", name}, Timeout: i.limit})
			if _, exited := exited(err); err != nil && !exited {
				return fmt.Errorf("remove %s: %w", name, err)
			}
			again = again || err == nil
		}
		out, err := run(ctx, i.host, "dnf", "-q", "repoquery", "--installed", "--unneeded", "--qf", `%{name}\n`)
		if err != nil {
			return fmt.Errorf("find out which packages nothing needs any more: %w", err)
		}
		for _, name := range strings.Fields(out) {
			if !before[name] && !slices.Contains(ours, name) {
				ours, again = append(ours, name), true
			}
		}
	}
	p, err := i.look(ctx)
	if err != nil {
		return err
	}
	for _, name := range ours {
		if _, there := p.have[name]; there {
			i.log(fmt.Sprintf("%s stays on %s: others need it", name, i.host.Name()))
		}
	}
	return nil
}

package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/dropin"
)

// Mount is host_mount: a file system that is mounted, and a line of ours in fstab.
type Mount struct{}

var (
	_ providers.Resource = Mount{}
	_ providers.Preparer = Mount{}
	_ providers.Planner  = Mount{}
	_ providers.Claimer  = Mount{}
)

const (
	mountInfo = "/proc/self/mountinfo"
	fstab     = "/etc/fstab"
)

// Schema is constant.
func (Mount) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "host_mount",
		Description: "A mounted file system. Destroy unmounts it and removes the folder that was made for it; one that was mounted before stays, with the options that it had. " +
			"For hugetlbfs of a page size host_hugepages is enough.",
		Example: `resource "host_mount" "results" {
  target  = "/mnt/results"
  source  = "tmpfs"
  type    = "tmpfs"
  options = ["size=1g", "noexec"]
}`,
		Setting: true,
		After:   []string{"host_package", "host_module"},
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"target": required(cty.String, schema.Replace, validTarget, "Folder that it is mounted on, an absolute path without symbolic links. It is made if it is missing."),
			"source": required(cty.String, schema.Replace, validSource, "Device, UUID=..., LABEL=..., SERVER:PATH, or any word for file systems without a device (tmpfs)."),
			"type":   required(cty.String, schema.Replace, validType, "Type of the file system: ext4, tmpfs, nfs, hugetlbfs, ..."),
			"options": {Type: cty.List(cty.String), Optional: true, Default: cty.ListValEmpty(cty.String), Validate: each(validOption),
				Description: "Options of mount(8), one each: [\"noexec\", \"size=1g\"]. A change remounts. Those that the kernel does not show in /proc/self/mountinfo cannot be compared."},
			"persistent": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Whether a line of Plumb's own in /etc/fstab mounts it at boot (with nofail, so that a missing device does not keep the host from booting)."},
			"mounted": {Type: cty.Bool, Computed: true, Description: "Whether it is mounted. False only when somebody has unmounted it: the next apply mounts it."},
		}},
	}
}

func validTarget(v cty.Value) error {
	if err := absolute(v); err != nil {
		return err
	}
	if slices.Contains([]string{"/boot", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/usr", "/var"}, v.AsString()) {
		return fmt.Errorf("%q is needed by the host itself", v.AsString())
	}
	return nil
}

func validSource(v cty.Value) error {
	if s := v.AsString(); s == "" || s[0] == '-' || s[0] == '#' {
		return fmt.Errorf("%q is empty or begins with - or #", s)
	}
	return oneLine(v)
}

func validType(v cty.Value) error {
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`).MatchString(v.AsString()) {
		return fmt.Errorf("%q is not a type of file system", v.AsString())
	}
	return nil
}

func validOption(v cty.Value) error {
	switch s := v.AsString(); {
	case s == "" || strings.ContainsAny(s, ", \t"):
		return fmt.Errorf("%q is empty or holds a comma or a blank: write one option in each element", s)
	case slices.Contains([]string{"remount", "bind", "rbind", "move", "loop"}, s):
		return fmt.Errorf("%q is not supported: it asks for another kind of mount", s)
	}
	return oneLine(v)
}

// mounted is an entry of mountinfo.
type mounted struct {
	source, target, typ string
	options             []string // of the mount, then of the file system
}

// parseMountinfo reads /proc/self/mountinfo (proc_pid_mountinfo(5)). Of two mounts on one folder the last one is what is seen.
func parseMountinfo(text string) []mounted {
	var out []mounted
	for line := range strings.Lines(text) {
		front, back, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		a, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(a) < 6 || len(b) < 2 {
			continue
		}
		m := mounted{source: unescape(b[1]), target: unescape(a[4]), typ: b[0], options: strings.Split(a[5], ",")}
		if len(b) > 2 {
			m.options = append(m.options, strings.Split(unescape(b[2]), ",")...)
		}
		out = append(out, m)
	}
	return out
}

// unescape resolves the kernel's octal escapes of blanks, tabs, newlines and backslashes (mangle_path of fs/seq_file.c). They are three digits.
func unescape(s string) string {
	return regexp.MustCompile(`\\[0-3][0-7]{2}`).ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.ParseUint(e[1:], 8, 8)
		if err != nil {
			return e
		}
		return string([]byte{byte(n)})
	})
}

// escape is a field of fstab(5).
func escape(s string) string {
	return strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "#", `\043`).Replace(s)
}

// wantedMount is what an instance wants.
type wantedMount struct {
	mounted
	persistent bool
}

func newMount(v cty.Value) wantedMount {
	options, _ := texts(v, "options")
	return wantedMount{mounted{attr.Text(v, "source"), attr.Text(v, "target"), attr.Text(v, "type"), options}, attr.Truth(v, "persistent", false)}
}

// line is ours in fstab.
func (w wantedMount) line() string {
	options := append(slices.Clone(w.options), "nofail")
	for i := range options {
		options[i] = escape(options[i])
	}
	return strings.Join([]string{escape(w.source), escape(w.target), w.typ, strings.Join(options, ","), "0", "0"}, " ")
}

// differs lists wanted options that are not in force, with what is instead: "" for a flag that is off.
func (w wantedMount) differs(have []string) map[string]string {
	out := map[string]string{}
	for _, o := range w.options {
		key, value, pair := strings.Cut(o, "=")
		if pair {
			for _, h := range have {
				if k, v, _ := strings.Cut(h, "="); k == key && !sameAmount(key, value, v) {
					out[o] = h
				}
			}
			continue
		}
		// Flags that the kernel shows when they are off are shown by their name with "no" (or without), or not at all.
		off, known := map[string]string{"ro": "rw", "rw": "ro", "exec": "noexec", "suid": "nosuid", "dev": "nodev", "atime": "noatime", "async": "sync"}[o]
		switch {
		case known && slices.Contains(have, off):
			out[o] = off
		case slices.Contains([]string{"noexec", "nosuid", "nodev", "noatime", "nodiratime", "sync", "dirsync", "relatime"}, o) && !slices.Contains(have, o):
			out[o] = ""
		}
	}
	return out
}

// sameAmount compares 1g with 1048576k, modes in octal, and other values as they are. Percentages of memory are shown in kB: they are not compared.
func sameAmount(key, want, have string) bool {
	if want == have || strings.HasSuffix(want, "%") {
		return true
	}
	read := amount
	if slices.Contains([]string{"mode", "umask", "fmask", "dmask"}, key) {
		read = func(s string) (uint64, error) { return strconv.ParseUint(s, 8, 16) }
	}
	a, err1 := read(want)
	b, err2 := read(have)
	return err1 == nil && err2 == nil && a == b
}

func amount(s string) (uint64, error) {
	digits := strings.TrimRight(s, "kKmMgG")
	shift, known := map[string]uint{"": 0, "k": 10, "m": 20, "g": 30}[strings.ToLower(s[len(digits):])]
	if !known {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseUint(digits, 10, 34)
	return n << shift, err
}

// mounts is what is mounted on a host, and its fstab.
type mounts struct {
	all   []mounted
	fstab []byte
	there bool // there is an fstab
}

func (m *mounts) at(target string) (mounted, bool) {
	for _, x := range slices.Backward(m.all) {
		if x.target == target {
			return x, true
		}
	}
	return mounted{}, false
}

type mountsKey struct{}

func mountsOf(ctx context.Context, h providers.Host) (*cache[*mounts], *mounts, error) {
	c, err := cacheOf[*mounts](ctx, h, mountsKey{})
	if err != nil {
		return nil, nil, err
	}
	m, err := c.get(ctx, func(ctx context.Context) (*mounts, error) {
		files, err := h.Conn().ReadFiles(ctx, mountInfo, fstab)
		if err != nil {
			return nil, fmt.Errorf("read mounts: %w", err)
		}
		table, there := files[fstab]
		return &mounts{parseMountinfo(string(files[mountInfo])), table, there}, nil
	})
	return c, m, err
}

// sameSource says that what is mounted comes from where it should. The kernel shows the device that a UUID or a link stands for: those are taken for right.
func (w wantedMount) sameSource(have mounted) bool {
	return w.source == have.source || strings.Contains(w.source, "=") && strings.HasPrefix(have.source, "/dev/") || strings.HasPrefix(w.source, "/dev/") && strings.HasPrefix(have.source, "/dev/") &&
		(strings.HasPrefix(w.source, "/dev/disk/") || strings.HasPrefix(w.source, "/dev/mapper/"))
}

// Read reports whether it is mounted, and options that differ.
func (Mount) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	_, m, err := mountsOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	w := newMount(req.Prior)
	have, there := m.at(w.target)
	there = there && have.typ == w.typ && w.sameSource(have)
	now := map[string]cty.Value{"mounted": cty.BoolVal(there)}
	if wrong := w.differs(have.options); there && len(wrong) > 0 {
		var options []string
		for _, o := range w.options {
			if is, differs := wrong[o]; !differs {
				options = append(options, o)
			} else if is != "" {
				options = append(options, is)
			}
		}
		now["options"] = textList(options)
	}
	line, ours := dropin.Line(m.fstab, req.Mark)
	if kept := ours && line == w.line(); kept != w.persistent {
		now["persistent"] = cty.BoolVal(kept)
	}
	return providers.ReadResult{Current: with(req.Prior, now)}, nil
}

// Plan finds a folder on which something else is mounted.
func (Mount) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil {
		return res, err
	}
	res.Planned = with(res.Planned, map[string]cty.Value{"mounted": cty.True})
	if f == nil || !req.Proposed.GetAttr("target").IsKnown() || !req.Proposed.GetAttr("source").IsKnown() || !req.Proposed.GetAttr("type").IsKnown() {
		return res, nil
	}
	_, m, err := mountsOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	w := newMount(req.Proposed)
	if have, there := m.at(w.target); there && (have.typ != w.typ || !w.sameSource(have)) {
		res.Problems = append(res.Problems, problem("target", "Something else is mounted there", "On %s, %s is %s (%s), and not %s (%s). Unmount it, or choose another target.",
			req.Host.Name(), w.target, have.source, have.typ, w.source, w.typ))
	}
	if !req.Prior.IsNull() && req.Proposed.GetAttr("options").IsWhollyKnown() {
		for _, o := range newMount(req.Prior).options {
			key, _, pair := strings.Cut(o, "=")
			if pair && !slices.ContainsFunc(w.options, func(n string) bool { return strings.HasPrefix(n, key+"=") }) {
				res.Problems = append(res.Problems, problem("options", "Option cannot be taken back", "%s is mounted on %s with %s, and a remount cannot go back to a default that is not known. Give %s the value that it is to have.",
					w.target, req.Host.Name(), o, key))
			}
		}
	}
	return res, nil
}

// Claims says that the target is one instance's.
func (Mount) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	target := attr.Text(planned, "target")
	if target == "" {
		return providers.Claims{}, nil
	}
	return providers.Claims{Unique: []providers.Unique{{Scope: "mount point", Value: target, Path: cty.GetAttrPath("target")}}}, nil
}

// undoMount is what was found.
type undoMount struct {
	There   bool     `json:"there"`             // it was mounted
	Options []string `json:"options,omitempty"` // of the mount itself, then
	Folders []string `json:"folders,omitempty"` // that were missing, the innermost first
	NoTable bool     `json:"no_table,omitempty"`
}

// Prepare records whether it is mounted, with which options, and which folders are missing.
func (Mount) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	if len(req.Undo) > 0 {
		return req.Undo, nil // target, source and type cannot change
	}
	w := newMount(req.Planned)
	c, err := cacheOf[*mounts](ctx, req.Host, mountsKey{})
	if err != nil {
		return nil, err
	}
	c.drop()
	_, m, err := mountsOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	u := undoMount{NoTable: !m.there}
	if have, there := m.at(w.target); there {
		u.There, u.Options = true, have.options
		return json.Marshal(u)
	}
	names := []string{}
	for d := w.target; d != "/"; d = path.Dir(d) {
		names = append(names, d)
	}
	stats, err := statAll(ctx, req.Host, names)
	if err != nil {
		return nil, err
	}
	for _, d := range names {
		switch s := stats[d]; {
		case s == nil:
			u.Folders = append(u.Folders, d)
		case s.link():
			return nil, fmt.Errorf("mount on %s: %s is a symbolic link; name the folder that it leads to", w.target, d)
		case s.mode&0o170000 != 0o040000:
			return nil, fmt.Errorf("mount on %s: %s is no folder", w.target, d)
		}
	}
	return json.Marshal(u)
}

// Apply mounts, remounts or unmounts.
func (Mount) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := recorded[undoMount](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c, err := cacheOf[*mounts](ctx, req.Host, mountsKey{})
	if err != nil {
		return providers.ApplyResult{}, err
	}
	v, err := req.Host.Shared(ctx, tableKey{}, func(context.Context) (any, error) { return newToken(), nil })
	if err != nil {
		return providers.ApplyResult{}, err
	}
	defer v.(token).take()() // fstab is one file
	c.drop()
	defer c.drop()
	if req.Planned.IsNull() {
		w := newMount(req.Prior)
		if err := w.keep(ctx, req, c, u, false); err != nil {
			return providers.ApplyResult{}, err
		}
		return providers.ApplyResult{New: req.Planned}, w.restore(ctx, req.Host, c, u)
	}
	w := newMount(req.Planned)
	var dropped []string
	if !req.Prior.IsNull() {
		dropped = slices.DeleteFunc(newMount(req.Prior).options, func(o string) bool { return slices.Contains(w.options, o) })
	}
	if err := w.converge(ctx, req.Host, c, u, dropped); err != nil {
		return providers.ApplyResult{}, err
	}
	if err := w.keep(ctx, req, c, u, w.persistent); err != nil {
		return providers.ApplyResult{}, err
	}
	return providers.ApplyResult{New: with(req.Planned, map[string]cty.Value{"mounted": cty.True})}, nil
}

type tableKey struct{}

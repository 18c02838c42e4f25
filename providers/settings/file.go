package settings

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sync/errgroup"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// File is host_file: a whole file, with its mode and owner.
type File struct{}

var (
	_ providers.Resource = File{}
	_ providers.Preparer = File{}
	_ providers.Planner  = File{}
	_ providers.Claimer  = File{}
)

// keepLimit is the size of a file that was found, up to which it is kept in the state to be put back.
const keepLimit = 1 << 20

// Schema is constant.
func (File) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "host_file",
		Description: "A regular file. What was there, up to 1 MiB, is kept in the state with its mode and owner and put back by destroy; where nothing was, the file is removed, and the folders that " +
			"were made for it, if nothing else is in them. A symbolic link or anything else of that name is refused.",
		Example: `resource "host_file" "irqbalance" {
  path    = "/etc/default/irqbalance"
  content = "IRQBALANCE_BANNED_CPULIST=2-15\n"
}`,
		Setting:  true,
		Survives: true,
		After:    []string{"host_package", "host_mount"},
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"path": {Type: cty.String, Required: true, Cost: schema.Replace, Validate: validFile,
				Description: "Absolute path. Not below /proc, /sys and /dev: those are no files to be kept (host_sysctl, host_module, host_cpu_power, host_irq_affinity)."},
			"content":           optional(cty.String, schema.Live, nil, "The content, as UTF-8. One of content, content_sensitive and source is given."),
			"content_sensitive": {Type: cty.String, Optional: true, Sensitive: true, Description: "The content, where it must not be shown: it is in no plan and no log. sha256 is null then."},
			"source": optional(cty.String, schema.Live, oneLine,
				"Path of a file on the machine that Plumb runs on, whose content it gets. It is read when the plan is made; an apply refuses one that has changed since."),
			"mode": {Type: cty.String, Optional: true, Default: cty.StringVal("0644"), Canonical: canonicalMode,
				Description: "Permissions in octal: 0644 (chmod(1))."},
			"owner":  optional(cty.String, schema.Live, validOwner, "User, by name or number. Unset: the one that the file has, root for a new one."),
			"group":  optional(cty.String, schema.Live, validOwner, "Group, by name or number. Unset: the one that the file has, root's for a new one."),
			"sha256": {Type: cty.String, Computed: true, Description: "SHA-256 of the content in hexadecimal, for restart_on of host_service. Null with content_sensitive."},
		}},
	}
}

func validFile(v cty.Value) error {
	if err := absolute(v); err != nil {
		return err
	}
	for dir, instead := range map[string]string{"/proc/sys/": "use host_sysctl", "/proc/irq/": "use host_irq_affinity", "/proc/": "it is the kernel's", "/sys/module/": "use host_module",
		"/sys/devices/system/cpu/": "use host_cpu_power", "/sys/": "it is the kernel's", "/dev/": "it holds devices"} {
		if strings.HasPrefix(v.AsString(), dir) {
			return fmt.Errorf("%q is below %s and no file that could be kept: %s", v.AsString(), strings.TrimSuffix(dir, "/"), instead)
		}
	}
	return nil
}

func canonicalMode(v cty.Value) (cty.Value, error) {
	n, err := strconv.ParseUint(v.AsString(), 8, 16)
	if err != nil || n > 0o7777 {
		return cty.NilVal, fmt.Errorf("%q is not a mode in octal, such as 0644", v.AsString())
	}
	return cty.StringVal(fmt.Sprintf("%04o", n)), nil
}

func validOwner(v cty.Value) error {
	if s := v.AsString(); !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\$?$`).MatchString(s) { // useradd(8), and directory services
		return fmt.Errorf("%q is not the name or number of a user or group", s)
	}
	return nil
}

// seenFile is a file of a host.
type seenFile struct {
	there        bool
	mode         uint32 // st_mode: type and permissions
	uid, gid     string
	user, group  string
	size         int64
	data         []byte // of a regular file
	cannotBeRead error
}

func (s *seenFile) regular() bool { return s.mode&0o170000 == 0o100000 }
func (s *seenFile) link() bool    { return s.mode&0o170000 == 0o120000 }

type filesKey struct{}

// lookFile reads a file, with others that are asked for at the same time.
func lookFile(ctx context.Context, h providers.Host, name string) (*seenFile, error) {
	if h == nil {
		return nil, errNoHost
	}
	v, err := h.Shared(ctx, filesKey{}, func(context.Context) (any, error) {
		return newBatch(func(ctx context.Context, names []string) (map[string]*seenFile, error) {
			return readSeen(ctx, h, names)
		}), nil
	})
	if err != nil {
		return nil, err
	}
	s, err := v.(*batch[*seenFile]).get(ctx, name)
	if err == nil && s == nil {
		s = &seenFile{}
	}
	return s, err
}

const statFormat = "%f %u %g %U %G %s %n"

// readSeen looks at files and reads them, at the same time: one round trip.
func readSeen(ctx context.Context, h providers.Host, names []string) (map[string]*seenFile, error) {
	var stats map[string]*seenFile
	var contents map[string][]byte
	var readErr error
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { stats, err = statAll(gctx, h, names); return err })
	g.Go(func() error {
		contents, readErr = h.Conn().ReadFiles(gctx, names...)
		if errors.Is(readErr, providers.ErrUnreachable) || gctx.Err() != nil {
			return readErr
		}
		return nil // a folder of that name, say: what matters is said by whoever needs it
	})
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("look at files: %w", err)
	}
	for name, s := range stats {
		data, ok := contents[name]
		s.data = data
		if !ok && s.regular() {
			s.cannotBeRead = errors.Join(errors.New("it cannot be read"), readErr)
		}
	}
	return stats, nil
}

// statAll is stat of many files. Those that are not there are left out.
func statAll(ctx context.Context, h providers.Host, names []string) (map[string]*seenFile, error) {
	res, err := h.Conn().Run(ctx, providers.Cmd{Args: append([]string{"stat", "-c", statFormat, "--"}, names...)})
	if status, exited := exited(err); err != nil && (!exited || status != 1) {
		return nil, err
	}
	return parseStats(string(res.Stdout))
}

func parseStats(out string) (map[string]*seenFile, error) {
	all := map[string]*seenFile{}
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 7)
		if len(f) != 7 {
			return nil, fmt.Errorf("stat printed %q", line)
		}
		mode, err := strconv.ParseUint(f[0], 16, 32)
		size, err2 := strconv.ParseInt(f[5], 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("stat printed %q: %w", line, err)
		}
		all[f[6]] = &seenFile{there: true, mode: uint32(mode), uid: f[1], gid: f[2], user: f[3], group: f[4], size: size}
	}
	return all, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// Read reports the content, the mode and the owner. A file that is not there has mode "".
func (File) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	s, err := lookFile(ctx, req.Host, attr.Text(req.Prior, "path"))
	if err != nil {
		return providers.ReadResult{}, err
	}
	if s.cannotBeRead != nil {
		return providers.ReadResult{}, fmt.Errorf("read %s: %w", attr.Text(req.Prior, "path"), s.cannotBeRead)
	}
	return providers.ReadResult{Current: with(req.Prior, seenAttrs(req.Prior, s))}, nil
}

func seenAttrs(prior cty.Value, s *seenFile) map[string]cty.Value {
	now := map[string]cty.Value{"mode": cty.StringVal(""), "sha256": cty.StringVal("")}
	if s.there {
		now["mode"] = cty.StringVal(fmt.Sprintf("%04o", s.mode&0o7777))
	}
	if s.there && s.regular() {
		now["sha256"] = cty.StringVal(sum(s.data))
	}
	for _, name := range []string{"content", "content_sensitive"} {
		if prior.GetAttr(name).IsNull() {
			continue
		}
		if text := string(s.data); utf8.ValidString(text) { // else sha256, or the text that cannot be right, shows it
			now[name] = cty.StringVal(text)
		} else {
			now[name] = cty.StringVal("(not UTF-8)")
		}
		if name == "content_sensitive" {
			now["sha256"] = cty.NullVal(cty.String)
		}
	}
	// By the name or by the number, as it was given.
	if want := attr.Text(prior, "owner"); want != "" && want != s.uid {
		now["owner"] = cty.StringVal(s.user)
	}
	if want := attr.Text(prior, "group"); want != "" && want != s.gid {
		now["group"] = cty.StringVal(s.group)
	}
	return now
}

// Plan knows the hash, and finds what cannot be replaced.
func (File) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil {
		return res, err
	}
	hash, problems := hashOf(req.Proposed)
	res.Planned = with(res.Planned, map[string]cty.Value{"sha256": hash})
	res.Problems = append(res.Problems, problems...)
	if f == nil || !req.Prior.IsNull() && req.Prior.RawEquals(res.Planned) || !req.Proposed.GetAttr("path").IsKnown() {
		return res, nil
	}
	name := attr.Text(req.Proposed, "path")
	s, err := lookFile(ctx, req.Host, name)
	if err != nil {
		return res, err
	}
	ours := hash.IsKnown() && !hash.IsNull() && s.regular() && hash.AsString() == sum(s.data) // of an apply that was cut off
	if p := s.refuse(name, req.Host.Name()); p != nil && (!s.regular() || req.Prior.IsNull() && !ours) {
		res.Problems = append(res.Problems, *p)
	}
	return res, nil
}

// hashOf is what sha256 will be.
func hashOf(v cty.Value) (cty.Value, []providers.Problem) {
	var given []string
	for _, n := range []string{"content", "content_sensitive", "source"} {
		if !v.GetAttr(n).IsKnown() || !v.GetAttr(n).IsNull() {
			given = append(given, n)
		}
	}
	if len(given) != 1 {
		return cty.UnknownVal(cty.String), []providers.Problem{problem("", "Content is not clear", "Exactly one of content, content_sensitive and source says what is in the file; there are %d.", len(given))}
	}
	c := v.GetAttr(given[0])
	switch {
	case given[0] == "content_sensitive":
		return cty.NullVal(cty.String), nil
	case !c.IsKnown():
		return cty.UnknownVal(cty.String), nil
	case given[0] == "content":
		return cty.StringVal(sum([]byte(c.AsString()))), nil
	}
	data, err := os.ReadFile(c.AsString())
	if err != nil {
		return cty.UnknownVal(cty.String), []providers.Problem{problem("source", "Source cannot be read", "On this machine, %v. A relative path begins where Plumb is run; path.module gives the folder of a module.", err)}
	}
	return cty.StringVal(sum(data)), nil
}

// refuse says why what is there cannot be replaced.
func (s *seenFile) refuse(name, host string) *providers.Problem {
	var p providers.Problem
	switch {
	case !s.there:
		return nil
	case s.link():
		p = problem("path", "Path is a symbolic link", "%s of %s is a symbolic link. Name the file that it leads to (readlink -f %s), or remove the link: it would be lost.", name, host, name)
	case !s.regular():
		p = problem("path", "Path is no regular file", "%s of %s exists and is a folder, a device or a socket.", name, host)
	case s.size > keepLimit:
		p = problem("path", "File is too large to be put back", "%s of %s has %d bytes, and what is found is kept in the state up to %d. Move it aside, or write the new content to another path.", name, host, s.size, keepLimit)
	default:
		return nil
	}
	return &p
}

// Claims says that the path is one instance's.
func (File) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	name := attr.Text(planned, "path")
	if name == "" {
		return providers.Claims{}, nil
	}
	return providers.Claims{Unique: []providers.Unique{{Scope: "file", Value: name, Path: cty.GetAttrPath("path")}}}, nil
}

// undoFile is what was found.
type undoFile struct {
	There   bool     `json:"there"`
	Content []byte   `json:"content,omitempty"` // base64 in JSON
	Mode    uint32   `json:"mode,omitempty"`
	Owner   string   `json:"owner,omitempty"` // "UID:GID"
	Folders []string `json:"folders,omitempty"`
}

// Prepare records the file, and which folders on the way to it are missing.
func (File) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	if len(req.Undo) > 0 {
		return req.Undo, nil // the path cannot change
	}
	name := attr.Text(req.Planned, "path")
	var u undoFile
	names := []string{name}
	for d := path.Dir(name); d != "/"; d = path.Dir(d) {
		names = append(names, d)
	}
	stats, err := statAll(ctx, req.Host, names)
	if err != nil {
		return nil, err
	}
	for _, d := range names[1:] {
		if stats[d] == nil {
			u.Folders = append(u.Folders, d) // the innermost first
		}
	}
	s, err := lookFile(ctx, req.Host, name)
	switch {
	case err != nil:
		return nil, err
	case s.cannotBeRead != nil:
		return nil, fmt.Errorf("keep what is in %s: %w", name, s.cannotBeRead)
	}
	if p := s.refuse(name, req.Host.Name()); p != nil {
		return nil, errors.New(p.Detail)
	}
	if s.there {
		u.There, u.Content, u.Mode, u.Owner = true, s.data, s.mode&0o7777, s.uid+":"+s.gid
	}
	return json.Marshal(u)
}

// fileMode is a mode as Conn takes it.
func fileMode(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			m |= flag
		}
	}
	return m
}

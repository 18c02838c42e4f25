package bootargs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"plumb/providers"
	"plumb/providers/internal/dropin"
)

// Files of boot loaders.
const (
	grubDefault   = "/etc/default/grub"
	grubDir       = "/etc/default/grub.d"
	dropInPrefix  = "zz-plumb" // read after all others
	debianConfig  = "/boot/grub/grub.cfg"
	grub2Config   = "/boot/grub2/grub.cfg"
	grubEnv       = "/boot/grub2/grubenv"
	kernelCmdline = "/etc/kernel/cmdline" // of kernels that are installed later (kernel-install(8))
	loaderInfo    = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-47cf-b6c7-442b29b1a9f8"
)

func updateGrub() []string { return []string{"/usr/sbin/update-grub", "/usr/bin/update-grub"} }
func grubby() []string     { return []string{"/usr/sbin/grubby", "/usr/bin/grubby"} }
func mkconfig() []string {
	return []string{"/usr/sbin/grub2-mkconfig", "/usr/bin/grub2-mkconfig", "/usr/sbin/grub-mkconfig", "/usr/bin/grub-mkconfig"}
}
func entryDirs() []string {
	return []string{"/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries"}
}

func patterns() []string {
	p := slices.Concat(updateGrub(), grubby(), mkconfig())
	for _, d := range entryDirs() {
		p = append(p, d+"/*.conf")
	}
	return append(p, "/proc/cmdline", "/proc/sys/kernel/osrelease", grubDefault, grubDir+"/"+dropInPrefix+"-*.cfg", debianConfig, grub2Config, grubEnv, kernelCmdline, loaderInfo)
}

// Boot is what is kept for the next boot, and what the running kernel was booted with.
type Boot struct {
	Kind    Kind
	Source  string   // the file that the next boot reads
	Running []string // words of /proc/cmdline
	Next    []string // words of the command line to come

	files   map[string][]byte
	entries map[string][]string // words by file
}

// parse finds out the loader of the files of one look.
func parse(files map[string][]byte) *Boot {
	b := &Boot{files: files, Running: Words(string(files["/proc/cmdline"])), entries: map[string][]string{}}
	any := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := files[n]; return ok })
	}
	for name, data := range files {
		if slices.Contains(entryDirs(), path.Dir(name)) && !strings.Contains(path.Base(name), "rescue") {
			b.entries[name] = options(string(data), string(files[grubEnv]))
		}
	}
	_, debian := files[debianConfig]
	_, other := files[grub2Config]
	entries := len(b.entries) > 0
	switch {
	case strings.Contains(efiText(files[loaderInfo]), "systemd-boot"):
		if entries {
			b.Kind = Entries
		}
	case any(updateGrub()) && debian:
		b.Kind = GrubDropIn
	case any(grubby()) && (entries || other):
		b.Kind = Grubby
	case entries && (blscfg(string(files[grubDefault])) || !any(mkconfig())):
		b.Kind = Entries
	case any(mkconfig()) && (debian || other):
		b.Kind = GrubLine
	}
	b.next()
	return b
}

// blscfg says whether GRUB reads entries (GRUB_ENABLE_BLSCFG).
func blscfg(text string) bool {
	return regexp.MustCompile(`(?m)^GRUB_ENABLE_BLSCFG=["']?true`).MatchString(text)
}

// efiText reads a variable of the firmware: four bytes of attributes, then UTF-16.
func efiText(b []byte) string {
	var u []uint16
	for i := 4; i+1 < len(b); i += 2 {
		u = append(u, uint16(b[i])|uint16(b[i+1])<<8)
	}
	return string(utf16.Decode(u))
}

func (b *Boot) next() {
	switch {
	case b.Kind == None:
	case len(b.entries) > 0 && (b.Kind == Grubby || b.Kind == Entries):
		b.Source = b.running()
		b.Next = b.entries[b.Source]
	default:
		b.Source = debianConfig
		if _, ok := b.files[debianConfig]; !ok {
			b.Source = grub2Config
		}
		b.Next = linuxLine(string(b.files[b.Source]))
	}
}

// running is the entry of the running kernel, else the newest.
func (b *Boot) running() string {
	release := strings.TrimSpace(string(b.files["/proc/sys/kernel/osrelease"]))
	newest := ""
	for name := range b.entries {
		if v := field(string(b.files[name]), "version"); release != "" && (v == release || strings.Contains(path.Base(name), release)) {
			return name
		}
		newest = max(newest, name)
	}
	return newest
}

// linuxLine is the command line of the first entry in grub.cfg, which is the one that boots unless somebody chooses another.
func linuxLine(config string) []string {
	for line := range strings.Lines(config) {
		if w := Words(line); len(w) > 1 && slices.Contains([]string{"linux", "linux16", "linuxefi"}, w[0]) {
			return w[2:]
		}
	}
	return nil
}

// field is a value in a boot loader entry.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "), " "); ok && k == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// isOptions says whether a line of an entry holds arguments. There may be several.
func isOptions(line string) (string, bool) {
	f := strings.TrimLeft(line, " \t")
	rest, ok := strings.CutPrefix(f, "options")
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n") {
		return "", false
	}
	return rest, true
}

// options are the words of an entry's options. What RHEL 8 keeps of them in GRUB's environment is put in its place.
func options(text, env string) []string {
	var out []string
	for line := range strings.Lines(text) {
		rest, ok := isOptions(line)
		if !ok {
			continue
		}
		for _, w := range Words(rest) {
			switch w {
			case "$kernelopts":
				for e := range strings.Lines(env) {
					if v, ok := strings.CutPrefix(strings.TrimRight(e, "\n#"), "kernelopts="); ok {
						out = append(out, Words(v)...)
					}
				}
			case "$tuned_params":
			default:
				out = append(out, w)
			}
		}
	}
	return out
}

// putOptions gives an entry other options, by what edit makes of the words that stand there. Where there are several lines of options, one is left.
func putOptions(text string, edit func([]string) []string) string {
	var b strings.Builder
	var words []string
	at := -1
	for line := range strings.Lines(text) {
		rest, ok := isOptions(line)
		if !ok {
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
			b.WriteString(line)
			continue
		}
		words = append(words, Words(rest)...)
		if at < 0 {
			at = b.Len()
		}
	}
	now := edit(words)
	if slices.Equal(now, words) {
		return text
	}
	out := b.String()
	if at < 0 {
		if at = len(out); out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
			at++
		}
	}
	return out[:at] + "options " + strings.Join(now, " ") + "\n" + out[at:]
}

// assignment is what a shell reads to have more arguments than before. Without any the text is as it was to the byte, and so is grub.cfg.
func assignment(args []string) string {
	return `GRUB_CMDLINE_LINUX_DEFAULT="` + strings.Join(append([]string{"$GRUB_CMDLINE_LINUX_DEFAULT"}, args...), " ") + `"`
}

// assigned reads it back.
func assigned(text string) []string {
	m := regexp.MustCompile(`(?m)^GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT ?(.*)"$`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	return Words(m[1])
}

// DropIn is the file of an instance in /etc/default/grub.d.
func DropIn(m providers.Mark) string { return dropin.Path(grubDir, dropInPrefix, ".cfg", m) }

// mine are the arguments that stand where only the instance writes.
func (b *Boot) mine(m providers.Mark) []string {
	switch b.Kind {
	case GrubDropIn:
		if body, ours := dropin.Body(b.files[DropIn(m)], m); ours {
			return assigned(body)
		}
	case GrubLine:
		if line, there := dropin.Line(b.files[grubDefault], m); there {
			return assigned(line)
		}
	}
	return nil
}

// Kept are the arguments that the next boot will have of an instance that wants some; there is false when nothing of it is there. Where it has a place of its own, arguments that
// stand elsewhere are not its own.
func (b *Boot) Kept(m providers.Mark, want []string) (args []string, there bool) {
	switch b.Kind {
	case GrubDropIn:
		_, there = b.files[DropIn(m)]
		return has(b.Next, b.mine(m)), there || len(has(b.Next, want)) > 0
	case GrubLine:
		_, there = dropin.Line(b.files[grubDefault], m)
		return has(b.Next, b.mine(m)), there || len(has(b.Next, want)) > 0
	}
	lost := b.lacking(want)
	for _, u := range units(want) {
		if u.at(lost) < 0 {
			args = append(args, u...)
		}
	}
	return args, len(args) > 0
}

// lacking lists the arguments that any of the kernels would be booted without.
func (b *Boot) lacking(want []string) []string {
	if len(b.entries) == 0 || b.Kind != Grubby && b.Kind != Entries {
		return Missing(b.Next, want)
	}
	var out []string
	for _, u := range units(want) {
		for _, words := range b.entries {
			if u.at(words) < 0 {
				out = append(out, u...)
				break
			}
		}
	}
	return out
}

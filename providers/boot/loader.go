package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"plumb/providers"
)

// Files of boot loaders.
const (
	grubDefault = "/etc/default/grub"
	grubDir     = "/etc/default/grub.d"
	updateGrub  = "/usr/sbin/update-grub"
	grubConfig  = "/boot/grub/grub.cfg"
	grubby      = "/usr/sbin/grubby"
)

// toolLimit is how long a boot loader's tool may take: it looks at every kernel and every disk.
const toolLimit = 5 * time.Minute

// loader is what is known of a host's boot loader, read once until somebody changes something.
type loader struct {
	host providers.Host

	mu    sync.Mutex
	known *bootFiles

	changing sync.Mutex // the tools rewrite one file for all
}

// bootFiles are the files that tell it.
type bootFiles struct {
	kind    kind
	ours    map[string]string // drop-in files by name
	cmdline string            // of the running kernel
	dir     bool              // grub.d is there
	next    string            // command line that grubby keeps for the next boot
}

// kind is how arguments are kept for the next boot.
type kind string

const (
	noLoader   kind = ""
	grubDropIn kind = "grub"   // a file of ours in /etc/default/grub.d, and update-grub: Debian and its like
	grubbyTool kind = "grubby" // RHEL, Fedora and their like
)

type loaderKey struct{}

func loaderOf(ctx context.Context, h providers.Host) (*loader, error) {
	if h == nil {
		return nil, errors.New("boot settings are a host's, and none is given")
	}
	v, err := h.Shared(ctx, loaderKey{}, func(context.Context) (any, error) { return &loader{host: h}, nil })
	if err != nil {
		return nil, err
	}
	return v.(*loader), nil
}

func (l *loader) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
}

// look reads the files in one round trip; with grubby it takes a second.
func (l *loader) look(ctx context.Context) (*bootFiles, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known != nil {
		return l.known, nil
	}
	files, err := l.host.Conn().ReadFiles(ctx, "/proc/cmdline", grubDefault, grubDir+"/90-plumb-*.cfg", updateGrub, grubby)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("look at the boot loader: %w", err)
	}
	b := &bootFiles{cmdline: strings.TrimSpace(string(files["/proc/cmdline"])), ours: map[string]string{}}
	_, update := files[updateGrub]
	_, tool := files[grubby]
	switch {
	case update:
		b.kind = grubDropIn
	case tool:
		b.kind = grubbyTool
		res, err := l.host.Conn().Run(ctx, providers.Cmd{Args: []string{"grubby", "--info=DEFAULT"}, Timeout: toolLimit})
		if err != nil {
			return nil, fmt.Errorf("look at the boot loader: %w", err)
		}
		b.next = grubbyArgs(string(res.Stdout))
	}
	for name, data := range files {
		if path.Dir(name) == grubDir {
			b.ours[name] = string(data)
		}
	}
	l.known = b
	return b, nil
}

// grubbyArgs finds the arguments in what `grubby --info` prints: args="..." in a line.
func grubbyArgs(out string) string {
	if m := regexp.MustCompile(`(?m)^args="(.*)"$`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return ""
}

// dropInName is the file of one instance; the mark is in the name, so that two testbeds never share one.
func dropInName(m providers.Mark) string {
	sum := sha256.Sum256([]byte(m.Testbed + "\x00" + m.Address))
	return grubDir + "/90-plumb-" + hex.EncodeToString(sum[:6]) + ".cfg"
}

// dropIn is its text. The arguments come last on the command line, where they win over others of the same name.
func dropIn(m providers.Mark, args []string) string {
	return fmt.Sprintf("# Written by Plumb: %s of testbed %s. plumb destroy removes it.\nGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT %s\"\n", m.Address, m.Testbed, strings.Join(args, " "))
}

// dropInArgs reads them back.
func dropInArgs(text string) []string {
	m := regexp.MustCompile(`(?m)^GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT ?(.*)"$`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	return words(m[1])
}

// kept are the arguments that an instance has in the boot loader; there is false when it has nothing there.
func (b *bootFiles) kept(m providers.Mark, want []string) (args []string, there bool) {
	if b.kind == grubDropIn {
		text, ok := b.ours[dropInName(m)]
		return dropInArgs(text), ok
	}
	for _, a := range want {
		if count(b.next, a) > 0 {
			args = append(args, a)
		}
	}
	return args, len(args) > 0
}

// set keeps arguments for the next boot. had are those that the instance kept before.
func (l *loader) set(ctx context.Context, m providers.Mark, had, want []string) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	defer l.drop()
	b, err := l.look(ctx)
	if err != nil {
		return err
	}
	conn := l.host.Conn()
	switch b.kind {
	case grubbyTool:
		args := []string{"grubby", "--update-kernel=ALL"}
		var gone []string
		for _, a := range had {
			if !slices.Contains(want, a) {
				gone = append(gone, a)
			}
		}
		if len(gone) > 0 {
			args = append(args, "--remove-args="+strings.Join(gone, " "))
		}
		if len(want) > 0 {
			args = append(args, "--args="+strings.Join(want, " "))
		}
		_, err := conn.Run(ctx, providers.Cmd{Args: args, Timeout: toolLimit})
		return err
	case noLoader:
		return errors.New(noLoaderText)
	}
	if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"mkdir", "-p", "--", grubDir}}); err != nil {
		return err
	}
	// When it goes, the file stays, without arguments, until the boot loader has forgotten them: whoever is killed in between finds it.
	name := dropInName(m)
	if err := conn.WriteFile(ctx, name, []byte(dropIn(m, want)), 0o644); err != nil {
		return err
	}
	if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"update-grub"}, Timeout: toolLimit}); err != nil {
		return err
	}
	files, err := conn.ReadFiles(ctx, grubConfig)
	if err != nil {
		return err
	}
	if lost := missing(linuxLines(string(files[grubConfig])), want); len(lost) > 0 {
		return fmt.Errorf("update-grub was run, and %s has no %s: something after %s in %s sets GRUB_CMDLINE_LINUX_DEFAULT anew", grubConfig, strings.Join(lost, " "), path.Base(name), grubDir)
	}
	if len(want) > 0 {
		return nil
	}
	_, err = conn.Run(ctx, providers.Cmd{Args: []string{"rm", "-f", "--", name}})
	return err
}

const noLoaderText = "no boot loader was found that Plumb knows: it knows GRUB with update-grub (Debian, Ubuntu) and grubby (RHEL, Fedora)"

// linuxLines are the command lines in grub.cfg.
func linuxLines(config string) string {
	var out strings.Builder
	for line := range strings.Lines(config) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "linux") {
			out.WriteString(strings.Join(f[1:], " ") + "\n")
		}
	}
	return out.String()
}

package bootargs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"plumb/providers"
)

// Kind is how a host keeps arguments for its next boot.
type Kind string

// What is known.
const (
	None       Kind = ""
	GrubDropIn Kind = "GRUB, update-grub"   // a file of ours in /etc/default/grub.d: Debian, Ubuntu and their like
	GrubLine   Kind = "GRUB, grub-mkconfig" // a line of ours in /etc/default/grub: SUSE, Arch
	Grubby     Kind = "grubby"              // one list of words for all: RHEL, Fedora and their like
	Entries    Kind = "boot loader entries" // the same, in the files themselves: systemd-boot
	Unknown         = "no boot loader was found that Plumb knows: it knows GRUB with update-grub (Debian, Ubuntu) or grub-mkconfig, grubby (RHEL, Fedora), and the entries of systemd-boot"
	toolLimit       = 5 * time.Minute // a boot loader's tool looks at every kernel and every disk
)

// Loader is a host's boot loader, looked at once until somebody changes something.
type Loader struct {
	host providers.Host

	mu    sync.Mutex
	known *Boot

	changing sync.Mutex // the tools rewrite one file for all
}

type loaderKey struct{}

// Of is the boot loader of a host, the same for all who ask in a run.
func Of(ctx context.Context, h providers.Host) (*Loader, error) {
	if h == nil {
		return nil, errors.New("the boot loader is a host's, and none is given")
	}
	v, err := h.Shared(ctx, loaderKey{}, func(context.Context) (any, error) { return &Loader{host: h}, nil })
	if err != nil {
		return nil, err
	}
	return v.(*Loader), nil
}

// Drop forgets what was seen.
func (l *Loader) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
}

// Look reads what there is, in one round trip, and shares it.
func (l *Loader) Look(ctx context.Context) (*Boot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known != nil {
		return l.known, nil
	}
	files, err := l.host.Conn().ReadFiles(ctx, patterns()...)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("look at the boot loader: %w", err)
	}
	l.known = parse(files)
	return l.known, nil
}

// Change is what an instance wants kept.
type Change struct {
	Mark  providers.Mark
	Found Found    // what was there before it; it holds all of Want
	Want  []string // empty: nothing any more
}

// Set keeps arguments for the next boot, and reads back that they are. It does nothing that is done already. A cancelled context does not stop it in the middle: half a configuration boots
// nothing. When it fails, a second Set finishes.
func (l *Loader) Set(ctx context.Context, c Change) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	defer l.Drop()
	l.Drop() // somebody else may have changed it since it was looked at for the plan
	b, err := l.Look(ctx)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	switch b.Kind {
	case GrubDropIn:
		err = l.setDropIn(ctx, b, c)
	case GrubLine:
		err = l.setLine(ctx, b, c)
	case Grubby:
		err = l.setGrubby(ctx, b, c)
	case Entries:
		err = l.setEntries(ctx, b, c)
	default:
		return errors.New(Unknown)
	}
	if err != nil {
		return err
	}
	l.Drop()
	if b, err = l.Look(ctx); err != nil {
		return err
	}
	if lost := b.lacking(c.Want); len(lost) > 0 {
		return fmt.Errorf("%s has no %s for the next boot, though it was set (%s): something else sets the command line anew", b.Source, strings.Join(lost, " "), b.Kind)
	}
	return nil
}

// Active says whether the running kernel has all of the arguments.
func (b *Boot) Active(args []string) bool { return len(Missing(b.Running, args)) == 0 }

// Gone lists the arguments of which the running kernel still has some and which are wanted no more.
func (b *Boot) Gone(had, want []string) []string {
	var out []string
	for _, u := range units(had) {
		if u.at(want) < 0 && u.at(b.Running) >= 0 {
			out = append(out, u...)
		}
	}
	return out
}

// Others are the words of the next command line without those of an instance: what Found is made of.
func (b *Boot) Others(m providers.Mark) []string {
	mine := b.mine(m)
	words := slices.Clone(b.Next)
	for _, u := range units(mine) {
		// Ours come last.
		for i := len(words) - len(u); i >= 0; i-- {
			if slices.EqualFunc(u, words[i:i+len(u)], same) {
				words = slices.Delete(words, i, i+len(u))
				break
			}
		}
	}
	return words
}

// Conflicts lists words that are on the next command line without the instance, and of which the kernel would take no notice of ours beside them.
func (b *Boot) Conflicts(m providers.Mark, mine, args []string) []string {
	if b.Kind == Grubby || b.Kind == Entries {
		return nil // ours replace them
	}
	var out []string
	for _, a := range args {
		if !firstCounts(Key(a)) {
			continue
		}
		for _, w := range ofKey(b.Others(m), Key(a)) {
			if !same(w, a) && !slices.ContainsFunc(mine, func(x string) bool { return same(x, w) }) {
				out = append(out, w)
			}
		}
	}
	return out
}

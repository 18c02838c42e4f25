package bootargs

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/dropin"
)

func (l *Loader) tool(ctx context.Context, args ...string) error {
	_, err := l.host.Conn().Run(ctx, providers.Cmd{Args: args, Timeout: toolLimit})
	return err
}

// done says that an instance's own place holds what it wants, and that the next boot has it and nothing that the instance wanted once.
func (b *Boot) done(c Change) bool {
	if len(c.Want) == 0 || !slices.Equal(b.mine(c.Mark), c.Want) || len(Missing(b.Next, c.Want)) > 0 {
		return false
	}
	ours := c.Found.Ours()
	stays := append(c.Found.Foreign(ours), c.Want...)
	return len(Missing(stays, has(b.Next, ours))) == 0
}

// setDropIn writes our file and has grub.cfg made anew. When it goes, it stays without arguments until grub.cfg has none: whoever is killed in between finds it.
func (l *Loader) setDropIn(ctx context.Context, b *Boot, c Change) error {
	conn, file := l.host.Conn(), DropIn(c.Mark)
	if _, there := b.files[file]; !there && len(c.Want) == 0 {
		if len(has(b.Next, c.Found.Ours())) == 0 {
			return nil
		}
		return l.tool(ctx, "update-grub") // somebody has removed the file alone
	}
	if b.done(c) {
		return nil
	}
	if err := dropin.Write(ctx, conn, file, c.Mark, assignment(c.Want)+"\n"); err != nil {
		return err
	}
	if err := l.tool(ctx, "update-grub"); err != nil {
		return err
	}
	if len(c.Want) == 0 {
		return dropin.Remove(ctx, conn, file, c.Mark)
	}
	return nil
}

// setLine is the same with a line in the file that is everybody's.
func (l *Loader) setLine(ctx context.Context, b *Boot, c Change) error {
	now := b.files[grubDefault]
	name := ""
	for _, n := range mkconfig() {
		if _, ok := b.files[n]; ok && name == "" {
			name = path.Base(n)
		}
	}
	if _, there := dropin.Line(now, c.Mark); !there && len(c.Want) == 0 {
		if len(has(b.Next, c.Found.Ours())) == 0 {
			return nil
		}
		return l.tool(ctx, name, "-o", b.Source)
	}
	if b.done(c) {
		return nil
	}
	text, err := dropin.PutLine(now, c.Mark, assignment(c.Want))
	if err != nil {
		return err
	}
	if err := l.host.Conn().WriteFile(ctx, grubDefault, text, 0o644); err != nil {
		return err
	}
	if err := l.tool(ctx, name, "-o", b.Source); err != nil {
		return err
	}
	if len(c.Want) == 0 {
		return l.host.Conn().WriteFile(ctx, grubDefault, dropin.TakeLine(text, c.Mark), 0o644)
	}
	return nil
}

// setGrubby tells grubby the difference, which it makes in all entries and for kernels to come.
func (l *Loader) setGrubby(ctx context.Context, b *Boot, c Change) error {
	now := edit(b.Next, c.Found, c.Want)
	var gone, more []string
	for _, u := range units(b.Next) {
		if u.at(now) < 0 {
			gone = append(gone, u...)
		}
	}
	// One that another entry lacks is given to all.
	lost := b.lacking(c.Want)
	for _, u := range units(now) {
		if u.at(b.Next) < 0 || u.at(lost) >= 0 {
			more = append(more, u...)
		}
	}
	if len(gone) == 0 && len(more) == 0 {
		return nil
	}
	args := []string{"grubby", "--update-kernel=ALL"}
	if len(gone) > 0 {
		args = append(args, "--remove-args="+strings.Join(gone, " "))
	}
	if len(more) > 0 {
		args = append(args, "--args="+strings.Join(more, " "))
	}
	if err := l.tool(ctx, args...); err != nil {
		return err
	}
	l.Drop()
	after, err := l.Look(ctx)
	if err != nil {
		return err
	}
	if lost := Missing(after.Next, now); len(lost) > 0 {
		return fmt.Errorf("grubby was told to set %q and to remove %q, and lost %s: it keeps one value of a name. Set them by hand", strings.Join(more, " "), strings.Join(gone, " "), strings.Join(lost, " "))
	}
	return nil
}

// setEntries edits the entries, and before them what kernels to come are given.
func (l *Loader) setEntries(ctx context.Context, b *Boot, c Change) error {
	change := func(words []string) []string { return edit(words, c.Found, c.Want) }
	conn := l.host.Conn()
	if text, ok := b.files[kernelCmdline]; ok {
		words := Words(string(text))
		if now := change(words); !slices.Equal(now, words) {
			if err := conn.WriteFile(ctx, kernelCmdline, []byte(strings.Join(now, " ")+"\n"), 0o644); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.entries)) {
		text := string(b.files[name])
		if now := putOptions(text, change); now != text {
			if err := conn.WriteFile(ctx, name, []byte(now), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

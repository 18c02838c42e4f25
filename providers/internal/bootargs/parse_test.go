package bootargs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
	"plumb/providers/internal/dropin"
)

func tree(files map[string]string) *Boot {
	m := map[string][]byte{}
	for name, text := range files {
		m[name] = []byte(text)
	}
	return parse(m)
}

var testMark = providers.Mark{Testbed: "bed", Address: "host_kernel_args.a"}

func wide(s string) string {
	out := "\x07\x00\x00\x00"
	for _, r := range s {
		out += string(r) + "\x00"
	}
	return out
}

// Trees of machines, as far as they are looked at.
func debian() map[string]string {
	return map[string]string{
		"/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz-6.1.0-13-amd64 root=/dev/vda1 ro quiet iommu=pt\n", "/usr/sbin/update-grub": "#!/bin/sh\n", "/usr/sbin/grub-mkconfig": "#!/bin/sh\n",
		grubDefault: "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n", DropIn(testMark): dropin.Header(testMark) + "\n" + assignment([]string{"iommu=pt", "nosmt"}) + "\n",
		debianConfig: "menuentry 'Debian' {\n\tlinux\t/boot/vmlinuz-6.1.0-13-amd64 root=/dev/vda1 ro quiet iommu=pt nosmt \n}\nmenuentry 'recovery' {\n\tlinux /boot/vmlinuz root=/dev/vda1 ro single\n}\n",
	}
}

func rhel(n string) map[string]string {
	entry := "title Rocky Linux (5.14.0-427.el9.x86_64) 9.4\nversion 5.14.0-427.el9.x86_64\nlinux /vmlinuz-5.14.0-427.el9.x86_64\ninitrd /initramfs-5.14.0-427.el9.x86_64.img $tuned_initrd\noptions root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off $tuned_params\ngrub_users $grub_users\n"
	f := map[string]string{
		"/proc/cmdline": "BOOT_IMAGE=(hd0,msdos1)/vmlinuz-5.14.0-427.el9.x86_64 root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off\n", "/proc/sys/kernel/osrelease": "5.14.0-427.el9.x86_64\n",
		"/usr/sbin/grubby": "#!/bin/bash\n", "/usr/sbin/grub2-mkconfig": "#!/bin/sh\n", grub2Config: "insmod blscfg\nblscfg\n", grubDefault: "GRUB_ENABLE_BLSCFG=true\n",
		"/boot/loader/entries/0a-5.14.0-427.el9.x86_64.conf": entry, "/boot/loader/entries/0a-0-rescue.conf": "version 0-rescue\noptions root=/dev/mapper/rl-root ro\n",
		"/boot/loader/entries/0a-5.14.0-503.el9.x86_64.conf": strings.ReplaceAll(strings.ReplaceAll(entry, "427", "503"), "iommu=off", ""),
	}
	if n == "8" {
		for name, text := range f {
			f[name] = strings.ReplaceAll(text, "options root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M", "options $kernelopts")
		}
		f[grubEnv] = "# GRUB Environment Block\nsaved_entry=0a\nkernelopts=root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M \n" + strings.Repeat("#", 100)
	}
	return f
}

func systemdBoot() map[string]string {
	return map[string]string{
		"/proc/cmdline": "root=PARTUUID=1 ro\n", "/proc/sys/kernel/osrelease": "6.12.1\n", loaderInfo: wide("systemd-boot 257.1"), kernelCmdline: "root=PARTUUID=1 ro\n",
		"/boot/efi/loader/entries/m-6.12.1.conf": "title Debian\nversion 6.12.1\noptions root=PARTUUID=1\noptions ro\nlinux /m/6.12.1/linux\n",
		// A GRUB that is installed and not used.
		"/usr/sbin/update-grub": "", debianConfig: "linux /x y\n",
	}
}

func suse() map[string]string {
	return map[string]string{
		"/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda2 quiet\n", "/usr/sbin/grub2-mkconfig": "", grubDefault: "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n" + dropin.Header(testMark) + "\n" + assignment([]string{"iommu=pt"}) + "\n",
		grub2Config: "\tlinuxefi /boot/vmlinuz root=/dev/sda2 quiet iommu=pt\n",
	}
}

func TestTrees(t *testing.T) {
	without := func(f map[string]string, names ...string) map[string]string {
		for _, n := range names {
			delete(f, n)
		}
		return f
	}
	for name, tc := range map[string]struct {
		files  map[string]string
		kind   Kind
		source string
		next   string
		kept   string // of "iommu=pt nosmt"
		others string
	}{
		"debian":         {debian(), GrubDropIn, debianConfig, "root=/dev/vda1 ro quiet iommu=pt nosmt", "iommu=pt nosmt", "root=/dev/vda1 ro quiet"},
		"rocky 9":        {rhel("9"), Grubby, "/boot/loader/entries/0a-5.14.0-427.el9.x86_64.conf", "root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off", "", "root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off"},
		"rocky 8":        {rhel("8"), Grubby, "/boot/loader/entries/0a-5.14.0-427.el9.x86_64.conf", "root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off", "", "root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off"},
		"without grubby": {without(rhel("9"), "/usr/sbin/grubby"), Entries, "/boot/loader/entries/0a-5.14.0-427.el9.x86_64.conf", "root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off", "", "root=/dev/mapper/rl-root ro crashkernel=1G-4G:192M iommu=off"},
		"systemd-boot":   {systemdBoot(), Entries, "/boot/efi/loader/entries/m-6.12.1.conf", "root=PARTUUID=1 ro", "", "root=PARTUUID=1 ro"},
		"suse":           {suse(), GrubLine, grub2Config, "root=/dev/sda2 quiet iommu=pt", "iommu=pt", "root=/dev/sda2 quiet"},
		"none":           {map[string]string{"/proc/cmdline": "console=hvc0\n"}, None, "", "", "", ""},
		"no grub.cfg":    {without(debian(), debianConfig), None, "", "", "", ""},
	} {
		b := tree(tc.files)
		kept, _ := b.Kept(testMark, Words("iommu=pt nosmt"))
		if b.Kind == None {
			kept = nil
		}
		got := []string{string(b.Kind), b.Source, strings.Join(b.Next, " "), strings.Join(kept, " "), strings.Join(b.Others(testMark), " ")}
		if d := cmp.Diff([]string{string(tc.kind), tc.source, tc.next, tc.kept, tc.others}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestRunningAndGone(t *testing.T) {
	b := tree(debian())
	if b.Active(Words("iommu=pt nosmt")) || !b.Active(Words("iommu=pt")) {
		t.Error("what the running kernel has is wrong")
	}
	if got := b.Gone(Words("iommu=pt nosmt quiet"), Words("quiet")); strings.Join(got, " ") != "iommu=pt" {
		t.Error(got)
	}
}

// A value of isolcpus that somebody else set counts, and ours not.
func TestConflicts(t *testing.T) {
	f := debian()
	f[debianConfig] = strings.Replace(f[debianConfig], " quiet ", " quiet isolcpus=1-3 hugepages=4 ", 1)
	b := tree(f)
	for args, want := range map[string]string{"isolcpus=1-2": "isolcpus=1-3", "isolcpus=1-3": "", "hugepages=8 quiet": "", "nohz_full=1": ""} {
		if got := strings.Join(b.Conflicts(testMark, nil, Words(args)), " "); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
	if got := b.Conflicts(testMark, Words("isolcpus=1-3"), Words("isolcpus=1-2")); got != nil {
		t.Errorf("what the instance had itself is a conflict: %q", got)
	}
}

func TestDone(t *testing.T) {
	b := tree(debian()) // with iommu=pt nosmt
	found := Found(nil).Find(Words("quiet ro"), Words("iommu=pt nosmt"))
	for want, done := range map[string]bool{"iommu=pt nosmt": true, "iommu=pt": false, "": false} {
		if got := b.done(Change{Mark: testMark, Found: found, Want: Words(want)}); got != done {
			t.Errorf("%q: %t", want, got)
		}
	}
	// Killed before grub.cfg was made anew.
	f := debian()
	f[DropIn(testMark)] = dropin.Header(testMark) + "\n" + assignment([]string{"iommu=pt"}) + "\n"
	if tree(f).done(Change{Mark: testMark, Found: found, Want: Words("iommu=pt")}) {
		t.Error("nosmt is left")
	}
}

func TestPutOptions(t *testing.T) {
	add := func(w []string) []string { return append(w, "nosmt") }
	for in, want := range map[string]string{
		"title x\noptions a b\nlinux /y\n":         "title x\noptions a b nosmt\nlinux /y\n",
		"options a\nlinux /y\n  options\tb\nend\n": "options a b nosmt\nlinux /y\nend\n",
		"title x\nlinux /y":                        "title x\nlinux /y\noptions nosmt\n",
		"optionsx a\noptions\n":                    "optionsx a\noptions nosmt\n",
		"":                                         "options nosmt\n",
	} {
		if got := putOptions(in, add); got != want {
			t.Errorf("%q: %q", in, got)
		}
		if got := putOptions(in, func(w []string) []string { return w }); got != in {
			t.Errorf("%q was changed for nothing: %q", in, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tree := range []map[string]string{debian(), rhel("8"), suse(), systemdBoot()} {
		for _, text := range tree {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		linuxLine(text)
		efiText([]byte(text))
		assigned(text)
		field(text, "version")
		options(text, text)
		put := putOptions(text, func(w []string) []string { return append(w, "nosmt") })
		if w := options(put, ""); strings.Count(text, `"`) == 0 && (len(w) == 0 || w[len(w)-1] != "nosmt") {
			t.Errorf("%q: %q", text, put)
		}
	})
}

func TestAssignment(t *testing.T) {
	for _, args := range [][]string{nil, {"a=1", "b"}} {
		if d := cmp.Diff(args, assigned(assignment(args))); d != "" {
			t.Error(d)
		}
	}
}

func TestAssignmentOfNone(t *testing.T) {
	for want, args := range map[string][]string{`GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT"`: nil, `GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT a=1 b"`: {"a=1", "b"}} {
		if got := assignment(args); got != want {
			t.Errorf("%q: %s", args, got)
		}
		if got := assigned(want); strings.Join(got, " ") != strings.Join(args, " ") {
			t.Errorf("%s is read as %q", want, got)
		}
	}
}

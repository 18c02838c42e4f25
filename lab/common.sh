# Sourced by the scripts of this folder. Where things are, and what the virtual host is made of.
#
#   cache   packages and the finished image with its keys, kept from run to run: PLUMB_LAB_CACHE, /var/cache/plumb-lab
#   run     what belongs to hosts that are up: PLUMB_LAB, the folder "run" in the cache. Tests get it as PLUMB_LAB.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(realpath -m "${PLUMB_LAB_CACHE:-/var/cache/plumb-lab}")
run=$(realpath -m "${PLUMB_LAB:-$cache/run}")
suite=trixie # its QEMU NICs' drivers, Open vSwitch 3.5 and DPDK 24.11 are of one release

# The cloud kernel has neither igb nor e1000e. Without recommended packages DPDK's drivers have to be named, 25 being DPDK 24.11's ABI.
packages=(
	linux-image-amd64 systemd systemd-sysv udev dbus kmod initramfs-tools zstd grub-pc-bin grub2-common
	openssh-server sudo iproute2 iputils-ping pciutils ethtool procps tcpdump socat python3-minimal
	openvswitch-switch openvswitch-switch-dpdk dpdk dpdk-dev driverctl tuned numactl
	librte-net-e1000-25 librte-net-virtio25 librte-net-af-packet25 librte-net-tap25 librte-mempool-ring25
)

say() { echo "lab: $*"; }
fail() { echo "lab: $*" >&2; exit 1; }

# The image is a folder: disk, id (root's key), id.pub and host.pub. Its name says what it was made from: another list, or another build script, is another image.
image() {
	local sum
	sum=$({ printf '%s\n' "$suite" "${packages[@]}"; cat "$lab/build"; } | sha256sum)
	echo "$cache/$suite-${sum:0:12}"
}

# alive says whether the host of a folder is up. Another process may have its number by now: ours names the folder's disk.
alive() { [ -s "$1/pid" ] && tr '\0' '\n' 2>/dev/null <"/proc/$(<"$1/pid")/cmdline" | grep -qF "file=$1/disk,"; }

# stop ends the host of a folder, if it is up, and removes what `up` has made there, and no other file.
stop() {
	local pid
	if alive "$1"; then
		pid=$(<"$1/pid")
		kill -KILL "$pid"
		tail --pid="$pid" -f /dev/null
	fi
	rm -f "$1"/{pid,disk,console,qemu.log,id,known_hosts,address,nics}
	[ ! -d "$1" ] || rmdir --ignore-fail-on-non-empty "$1"
}

# remote runs a command on the host of a folder.
remote() {
	local dir=$1 at port
	shift
	at=$(<"$dir/address") port=${at##*:}
	timeout 60 ssh -F none -n -i "$dir/id" -p "$port" -o UserKnownHostsFile="$dir/known_hosts" -o StrictHostKeyChecking=yes -o BatchMode=yes -o ConnectTimeout=10 -o LogLevel=ERROR "root@${at%:*}" "$@"
}

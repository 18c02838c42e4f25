# Sourced by the scripts of this folder. Where things are, and what the virtual host is made of.
#
#   cache   packages, the finished image and its keys, kept from run to run: PLUMB_LAB_CACHE, /var/cache/plumb-lab
#   run     what belongs to a host that is up: PLUMB_LAB, the folder "run" in the cache. Tests get it as PLUMB_LAB.
set -euo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${PLUMB_LAB_CACHE:-/var/cache/plumb-lab}
run=${PLUMB_LAB:-$cache/run}
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

# The image's name says what it was made from: another list, or another build script, is another image.
image() {
	local sum
	sum=$({ printf '%s\n' "$suite" "${packages[@]}"; cat "$lab/build"; } | sha256sum)
	echo "$cache/$suite-${sum:0:12}.qcow2"
}

# remote runs a command on the host that is up.
remote() {
	local at port
	at=$(<"$run/address") port=${at##*:}
	ssh -i "$run/id" -p "$port" -o UserKnownHostsFile="$run/known_hosts" -o StrictHostKeyChecking=yes -o BatchMode=yes -o ConnectTimeout=5 -o LogLevel=ERROR "root@${at%:*}" "$@"
}

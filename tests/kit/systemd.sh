#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# systemd.sh DIRECTORY CHECKOUT: a real systemd as PID 1 of namespaces over this machine's own root, in the foreground; it ends with this
# process. Rule: nothing written inside reaches the machine (overlay on a tmpfs, own /run, /tmp, /dev, pids, mounts, cgroups), and
# what would change its kernel or devices is masked. The network is the machine's, so a test's controller is reached.
# The checkout is /opt/holdfast in it. Needs root. systemd.ts is its only caller and cleans up.
set -eu
at=$1
checkout=$2
mount -t tmpfs holdfast-systemd "$at"
mkdir "$at/upper" "$at/work" "$at/root" "$at/cgroup"
mount -t overlay overlay -o "lowerdir=/,upperdir=$at/upper,workdir=$at/work" "$at/root"
mkdir -p "$at/root/opt/holdfast"
mount --bind "$checkout" "$at/root/opt/holdfast"
# A mount of its own: in a container the machine's may be read-only.
mount -t cgroup2 cgroup2 "$at/cgroup"
group=$at/cgroup/$(basename "$at")
mkdir -p "$group"
echo $$ >"$group/cgroup.procs"
# shellcheck disable=SC2016
exec unshare --pid --fork --kill-child --mount --uts --ipc --cgroup --propagation private sh -euc '
  root=$1/root
  mount -t tmpfs tmpfs "$root/run" -o mode=755
  mount -t tmpfs tmpfs "$root/tmp" -o mode=1777
  # A checkout below /tmp stays where it is.
  case $2 in /tmp/*) mkdir -p "$root$2" && mount --bind "$2" "$root$2" ;; esac
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount -t tmpfs tmpfs "$root/dev" -o mode=755
  for node in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "$root/dev/${node%:*}" c 1 "${node#*:}"
  done
  mknod -m 666 "$root/dev/tty" c 5 0
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666,mode=620
  mount -t tmpfs tmpfs "$root/dev/shm"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  : >"$root/dev/console"
  mkdir -p "$root/sys/fs/cgroup"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mkdir -p "$root/run/systemd/system"
  for unit in systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udev-trigger.service \
    systemd-sysctl.service systemd-modules-load.service kmod-static-nodes.service systemd-remount-fs.service \
    systemd-random-seed.service systemd-binfmt.service systemd-timesyncd.service systemd-hwdb-update.service \
    systemd-update-utmp.service systemd-journal-flush.service systemd-pcrphase.service systemd-pstore.service \
    systemd-sysusers.service systemd-networkd.service avahi-daemon.socket; do
    ln -s /dev/null "$root/run/systemd/system/$unit"
  done
  hostname holdfast-test
  cd "$root"
  mkdir -p .machine
  pivot_root . .machine
  umount -l /.machine
  mount --make-rshared /
  exec env -i container=holdfast PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb /lib/systemd/systemd --system --unit=basic.target
' sh "$at" "$checkout"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# @MARK@. It is replaced by the next one; holdfast devices unprotect removes it.
# Gives the device nodes of the GPUs to one group. Usage: device-nodes bind|module|boot|heal
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 022
why=${1:-boot}
group='@GROUP@'
cards='@CARDS@'
others='@OTHERS@'
changes='@CHANGES@'
changed=0
failed=0

# What was changed and what it was; no more than 64 KiB of it.
note() {
  changed=1
  mkdir -p "${changes%/*}" || return 0
  [ -f "$changes" ] && [ "$(wc -c <"$changes")" -gt 65536 ] && return 0
  printf '%s %s %s %s\n' "$(date +%s)" "$why" "$1" "$2" >>"$changes"
}

# NVIDIA's driver makes no node by itself: its own program does, and without it the numbers do.
make_node() {
  node=$1 major=$2 minor=$3
  shift 3
  [ -c "$node" ] && return 0
  if command -v nvidia-modprobe >/dev/null 2>&1; then nvidia-modprobe "$@" </dev/null || :; fi
  if [ ! -c "$node" ] && [ -n "$major" ]; then mknod -m 600 "$node" c "$major" "$minor" || failed=1; fi
  if [ -c "$node" ]; then note "$node" missing; fi
}

major_of() {
  sed -n "s/^ *\([0-9][0-9]*\) $1\$/\1/p" /proc/devices | head -n 1
}

make_missing() {
  found=no
  for information in /proc/driver/nvidia/gpus/*/information; do
    [ -r "$information" ] || continue
    minor=$(sed -n 's/^Device Minor:[[:space:]]*\([0-9][0-9]*\)$/\1/p' "$information")
    [ -n "$minor" ] || continue
    found=yes
    make_node "/dev/nvidia$minor" 195 "$minor" -c "$minor"
  done
  [ "$found" = yes ] || return 0
  make_node /dev/nvidiactl 195 255 -c 255
  uvm=$(major_of nvidia-uvm)
  make_node /dev/nvidia-uvm "$uvm" 0 -u -c 0
  uvm=$(major_of nvidia-uvm)
  make_node /dev/nvidia-uvm-tools "$uvm" 1 -u -c 0
}

# set_rights NODE MODE
set_rights() {
  [ -c "$1" ] || return 0
  now=$(stat -c '%a %U:%G' "$1") || return 0
  [ "$now" = "$2 root:$group" ] && return 0
  if chown "root:$group" "$1" && chmod "$2" "$1"; then
    note "$1" "$now"
  else
    failed=1
  fi
}

set_all() {
  for node in /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia-modeset $others; do
    set_rights "$node" 660
  done
  for card in $cards; do
    for render in "/sys/bus/pci/devices/$card/drm"/renderD*; do
      set_rights "/dev/dri/${render##*/}" 660
    done
  done
  # Slices: those that everybody may use become the group's; those of root alone stay.
  for node in /dev/nvidia-caps/nvidia-cap[0-9]*; do
    [ -c "$node" ] || continue
    case $(stat -c %a "$node") in
      *[1-7]) set_rights "$node" 440 ;;
    esac
  done
}

make_missing
set_all
# Whoever changed it may do so again while nobody watches: look until it stays.
round=0
while [ "$why" = heal ] && [ "$changed" = 1 ] && [ "$round" -lt 5 ]; do
  changed=0
  round=$((round + 1))
  sleep 1
  set_all
done
exit "$failed"

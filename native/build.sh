#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds native/prebuilt/shim-linux-{x64,arm64} from shim.c with Debian 12's gcc and gcc-aarch64-linux-gnu (12.2.0, binutils 2.40).
# Rule: that compiler makes the bytes that are committed. With --check it builds beside the tree and compares; another compiler
# must build it too, but its bytes differ, so they are not compared, and it says so.
set -eu

cd "$(dirname "$0")"
out=prebuilt
if [ "${1-}" = --check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi

PINNED="gcc 12.2.0, binutils 2.40"

version_of() {
  echo "gcc $("$1" -dumpfullversion), binutils $("$("$1" -print-prog-name=ld)" --version | sed -n '1s/.* \([0-9][0-9.]*\)$/\1/p')"
}

build() {
  compiler=$1 strip=$2 target=$3
  command -v "$compiler" >/dev/null || { echo "native/build.sh: $compiler is missing: apt-get install gcc gcc-aarch64-linux-gnu" >&2; exit 69; }
  "$compiler" -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib -static -fno-pic -no-pie \
    -fno-stack-protector -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-ident -fno-tree-loop-distribute-patterns \
    -fno-strict-aliasing -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro -o "$out/shim-linux-$target" shim.c
  "$strip" --strip-all --remove-section=.comment --remove-section=.note.gnu.property "$out/shim-linux-$target"
  chmod 755 "$out/shim-linux-$target"
}

build "${CC_X64:-gcc}" "${STRIP_X64:-strip}" x64
build "${CC_ARM64:-aarch64-linux-gnu-gcc}" "${STRIP_ARM64:-aarch64-linux-gnu-strip}" arm64

[ "$out" != prebuilt ] || exit 0

check() {
  compiler=$1 target=$2
  found=$(version_of "$compiler")
  if [ "$found" != "$PINNED" ]; then
    echo "native/build.sh: NOT COMPARED: prebuilt/shim-linux-$target is made by $PINNED, and $compiler here is $found" >&2
  elif cmp "$out/shim-linux-$target" "prebuilt/shim-linux-$target"; then
    echo "native/build.sh: prebuilt/shim-linux-$target is what shim.c gives"
  else
    echo "native/build.sh: prebuilt/shim-linux-$target is not what shim.c gives: run native/build.sh" >&2
    exit 1
  fi
}

check "${CC_X64:-gcc}" x64
check "${CC_ARM64:-aarch64-linux-gnu-gcc}" arm64

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds native/prebuilt/shim-linux-{x64,arm64} from shim.c with Debian's gcc and gcc-aarch64-linux-gnu.
# Rule: the same compiler gives the same bytes. With --check it builds beside the tree and compares with what is committed.
set -eu

cd "$(dirname "$0")"
out=prebuilt
if [ "${1-}" = --check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi

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

if [ "$out" != prebuilt ]; then
  for target in x64 arm64; do
    cmp "$out/shim-linux-$target" "prebuilt/shim-linux-$target" || { echo "native/build.sh: prebuilt/shim-linux-$target is not what shim.c gives: run native/build.sh" >&2; exit 1; }
  done
  echo "native/build.sh: both prebuilt shims are what shim.c gives"
fi

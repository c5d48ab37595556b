#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Enrols this machine as a node of a Holdfast controller, with or without root. It holds no secret and is the same for everybody.
# Everything is in functions and main is called last: a download that was cut off does nothing. What fails is undone.
# POSIX sh in ASCII and POSIX tools only, and curl, tar, gzip and one of sha256sum, shasum, openssl.
# shellcheck disable=SC2034,SC2154
set -eu
umask 077
LC_ALL=C
export LC_ALL

# Filled in by the controller that hands this out; its files must be exactly these.
VERSION='@VERSION@'
AGENT_X64='@AGENT_X64@'
AGENT_ARM64='@AGENT_ARM64@'
RUNTIME_X64='@RUNTIME_X64@'
RUNTIME_ARM64='@RUNTIME_ARM64@'

ACCOUNT=holdfast
JOB_ACCOUNT=holdfast-job
# Accounts that this script made carry it, and only those are ever removed.
MADE_BY='made by the Holdfast bootstrap'
PROVE_TRIES=60
# An agent that ended this often will not stay.
STARTS_MAX=5

usage() {
  cat <<'TEXT'
Usage: sh holdfast.sh --controller URL [options]
  --controller URL   where the controller is
  --pin PIN          its key, as curl's --pinnedpubkey takes it (a controller with a certificate of its own)
  --authority HASH   SHA-256 of its authority's certificate file
  --dry-run          say what would be done, and end
  --foreground       run the agent in this terminal instead of as a service
  --no-start         install and pair, and start nothing
  --uninstall        remove what was installed; the node's data stays
  --purge            with --uninstall: its data and accounts, too
  --yes              ask nothing
The pairing code is taken from HOLDFAST_PAIRING_CODE, else asked for on the terminal; without one, a machine that is paired
already is repaired or brought to this version.
TEXT
}

say() { printf '%s\n' "$*"; }
note() { printf '    %s\n' "$*"; }
warn() { printf '    ! %s\n' "$*" >&2; }

# Ends the run; what was done so far is undone by the trap.
die() {
  failure=$*
  printf 'holdfast: %s\n' "$*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# ---- what was asked for, what this machine is ------------------------------------------------------------------------

parse() {
  controller='' pin='' authority='' phase='' failure='' undo='' staging='' trust='' lock='' status='' trouble=''
  is_dry=no is_foreground=no is_started=yes is_uninstall=no is_purge=no is_yes=no
  # Changed anything; was not paired before; the controller has answered; the code was used in this run; the key stays; the controller
  # is gone.
  is_changed=no is_new=yes is_reached=no is_code_used=no is_key_kept=no is_mute=no
  while [ $# -gt 0 ]; do
    case $1 in
      --controller | --pin | --authority)
        [ $# -ge 2 ] || die "$1 needs a value"
        case $1 in
          --controller) controller=${2%/} ;;
          --pin) pin=$2 ;;
          --authority) authority=$2 ;;
        esac
        shift
        ;;
      --dry-run) is_dry=yes ;;
      --foreground) is_foreground=yes ;;
      --no-start) is_started=no ;;
      --uninstall) is_uninstall=yes ;;
      --purge) is_purge=yes ;;
      --yes) is_yes=yes ;;
      -h | --help)
        usage
        exit 0
        ;;
      *) die "$1 is no option; see --help" ;;
    esac
    shift
  done
  [ "$is_purge" = no ] || [ "$is_uninstall" = yes ] || die '--purge goes with --uninstall'
  [ "$is_foreground" = no ] || [ "$is_started" = yes ] || die '--foreground and --no-start exclude each other'
  case $is_uninstall$is_foreground$is_started in
    yesyes* | yes*no) die '--uninstall starts nothing: leave out --foreground and --no-start' ;;
  esac
}

# A machine that is paired knows its controller and what to trust already.
recall() {
  if [ -r "$root/node/agent.json" ] && [ -z "$controller" ]; then
    controller=$(field controllerUrl "$root/node/agent.json")
  fi
  if [ -z "$pin$authority" ] && [ -r "$root/node/trust.pem" ]; then trust=$root/node/trust.pem; fi
  case $controller in
    http://?*) [ -z "$pin$authority" ] || die '--pin and --authority go with an https address' ;;
    https://?*) ;;
    '') die 'which controller? give --controller URL' ;;
    *) die "--controller takes an http or https address, not $controller" ;;
  esac
  case $controller in *[!]A-Za-z0-9:/.[_-]*) die "--controller holds a character that no address has: $controller" ;; esac
  case $pin in '' | sha256//*) ;; *) die '--pin begins with sha256//' ;; esac
}

# Which of the two layouts, and where everything lies.
layout() {
  uid=$(id -u)
  if [ "$uid" -eq 0 ]; then
    kind=system
    prefix=/opt/holdfast
    command=/usr/local/bin/holdfast
    root=/var/lib/holdfast
    settings=/etc/holdfast
    unit_directory=/etc/systemd/system
    parents=755
  else
    kind=user
    home=${HOME:-}
    case $home in /*) ;; *) die 'HOME is not set: it is where a node without root lives' ;; esac
    data=${XDG_DATA_HOME:-$home/.local/share}
    config=${XDG_CONFIG_HOME:-$home/.config}
    prefix=$data/holdfast-agent
    command=$home/.local/bin/holdfast
    root=$data/holdfast
    settings=$config/holdfast
    unit_directory=$config/systemd/user
    parents=700
  fi
  unit=$unit_directory/holdfast-agent.service
  runtime=$prefix/runtime/node
  program=$prefix/agent/src/bin/holdfast.js
}

architecture() {
  [ "$(uname -s)" = Linux ] || die "this is $(uname -s): nodes run on Linux for now"
  case $(uname -m) in
    x86_64 | amd64) arch=x64 agent_hash=$AGENT_X64 runtime_hash=$RUNTIME_X64 ;;
    aarch64 | arm64) arch=arm64 agent_hash=$AGENT_ARM64 runtime_hash=$RUNTIME_ARM64 ;;
    *) die "this is $(uname -m): nodes run on x86_64 and aarch64" ;;
  esac
  case "$agent_hash:$runtime_hash" in
    :* | *:) die "this controller has nothing for $arch: run there: npm run bundle -- --arch $arch" ;;
  esac
}

hash_tool() {
  if have sha256sum; then
    hasher=sha256sum
  elif have shasum; then
    hasher='shasum -a 256'
  elif have openssl; then
    hasher='openssl dgst -sha256 -r'
  else
    die 'none of sha256sum, shasum, openssl is here: what is fetched could not be checked, so nothing is fetched'
  fi
}

# The SHA-256 of a file, never empty.
hash_of() {
  # shellcheck disable=SC2086
  hash_line=$($hasher <"$1") || die "cannot read $1"
  hash_line=${hash_line%% *}
  case $hash_line in *[!0-9a-f]* | '') die "$hasher gave no hash of $1" ;; esac
  [ ${#hash_line} -eq 64 ] || die "$hasher gave no hash of $1"
  printf '%s\n' "$hash_line"
}

# One hash of all that lies below a directory: names, contents, and what is not readable for everybody.
tree_hash() {
  # shellcheck disable=SC2086
  (cd "$1" && { find . -type f -exec $hasher {} + && find . ! -perm -444; } | sort) >"$staging/tree" 2>&1
  hash_of "$staging/tree"
}

service_manager() {
  manager=none
  if [ ! -d /run/systemd/system ] || ! have systemctl; then return 0; fi
  if [ "$kind" = system ]; then
    manager=system
    return 0
  fi
  # After su or sudo the address of the user's own manager is not in the environment, or is another user's.
  if [ -d "/run/user/$uid" ]; then
    XDG_RUNTIME_DIR=/run/user/$uid
    export XDG_RUNTIME_DIR
  fi
  if systemctl --user show-environment >/dev/null 2>&1; then
    manager=user
  else
    warn "no systemd manager runs for $(id -un): an administrator can start one with: loginctl enable-linger $(id -un)"
  fi
}

control() {
  if [ "$manager" = user ]; then systemctl --user "$@"; else systemctl "$@"; fi
}

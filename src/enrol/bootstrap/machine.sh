#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Enrols this machine as a node of a Holdfast controller, with or without root. It holds no secret and is the same for everybody.
# Everything is in functions and main is called last: a download that was cut off does nothing. What fails is undone.
# POSIX sh and POSIX tools only, and curl, tar, gzip and one of sha256sum, shasum, openssl.
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
PROVE_TRIES=60

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
  controller='' pin='' authority='' code='' phase='' failure='' undo='' staging='' trust='' lock=''
  is_dry=no is_foreground=no is_started=yes is_uninstall=no is_purge=no is_yes=no is_changed=no is_new=yes
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
}

# A machine that is paired knows its controller and what to trust already.
recall() {
  if [ -r "$root/node/agent.json" ] && [ -z "$controller" ]; then
    controller=$(field controllerUrl "$root/node/agent.json")
  fi
  if [ -z "$pin$authority" ] && [ -r "$root/node/trust.pem" ]; then trust=$root/node/trust.pem; fi
  case $controller in
    http://?* | https://?*) ;;
    '') die 'which controller? give --controller URL' ;;
    *) die "--controller takes an http or https address, not $controller" ;;
  esac
  case $controller in *[!A-Za-z0-9:/.\[\]_-]*) die "--controller holds a character that no address has: $controller" ;; esac
  case $pin in '' | sha256//*) ;; *) die '--pin begins with sha256//' ;; esac
}

# Which of the two layouts, and where everything lies.
layout() {
  uid=$(id -u)
  if [ "$uid" -eq 0 ]; then
    kind=system
    prefix=/opt/holdfast
    root=/var/lib/holdfast
    settings=/etc/holdfast
    unit_directory=/etc/systemd/system
  else
    kind=user
    home=${HOME:-}
    case $home in /*) ;; *) die 'HOME is not set: it is where a node without root lives' ;; esac
    data=${XDG_DATA_HOME:-$home/.local/share}
    config=${XDG_CONFIG_HOME:-$home/.config}
    prefix=$data/holdfast-agent
    root=$data/holdfast
    settings=$config/holdfast
    unit_directory=$config/systemd/user
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
}

hash_tool() {
  if have sha256sum; then
    hasher=sha256sum
  elif have shasum; then
    hasher=shasum
  elif have openssl; then
    hasher=openssl
  else
    die 'none of sha256sum, shasum, openssl is here: what is fetched could not be checked, so nothing is fetched'
  fi
}

# The SHA-256 of a file, never empty.
hash_of() {
  case $hasher in
    sha256sum) hash_line=$(sha256sum <"$1") || die "cannot read $1" ;;
    shasum) hash_line=$(shasum -a 256 <"$1") || die "cannot read $1" ;;
    openssl) hash_line=$(openssl dgst -sha256 -r <"$1") || die "cannot read $1" ;;
  esac
  hash_line=${hash_line%% *}
  case $hash_line in *[!0-9a-f]* | '') die "$hasher gave no hash of $1" ;; esac
  [ ${#hash_line} -eq 64 ] || die "$hasher gave no hash of $1"
  printf '%s\n' "$hash_line"
}

service_manager() {
  manager=none
  if [ ! -d /run/systemd/system ] || ! have systemctl; then return 0; fi
  if [ "$kind" = system ]; then
    manager=system
    return 0
  fi
  # After su or sudo the address of the user's own manager is not in the environment.
  if [ -z "${XDG_RUNTIME_DIR:-}" ] && [ -d "/run/user/$uid" ]; then
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

# ---- talking to the controller ---------------------------------------------------------------------------------------

# Secrets reach curl by its standard input only: neither argv nor a file ever holds them. echo is part of every shell,
# printf is not (mksh), and would have them in its argv.
secret_header() {
  if [ -n "$code" ]; then
    echo "header = \"holdfast-pairing-code: $code\""
  elif [ -r "$root/node/credential" ]; then
    read -r credential <"$root/node/credential" || true
    echo "header = \"authorization: Bearer $credential\""
  fi
}

# request PATH OUTPUT [curl options]: with the secret, trusting exactly the controller that was named.
request() {
  request_path=$1 request_output=$2
  shift 2
  if [ -n "$trust" ]; then set -- --cacert "$trust" "$@"; elif [ -n "$pin" ]; then set -- -k --pinnedpubkey "$pin" "$@"; fi
  secret_header | curl -q -K - -sS --connect-timeout 8 --max-time 300 -o "$request_output" -w '%{http_code}' "$@" \
    "$controller$request_path" 2>"$staging/curl.err"
}

# What went wrong between here and there, in words.
explain() {
  explanation=$(head -n 1 "$staging/curl.err" 2>/dev/null || true)
  case $explanation in
    *'not yet valid'* | *'expired'*) say "clock_off: $explanation: is the clock of this machine right? It says $(date -u)" ;;
    *'pinned public key'*) say "another server answers at $controller: its key is not the one in the command" ;;
    *certificate* | *SSL*) say "the certificate of $controller is not accepted: $explanation; the controller's --url must be the name that nodes use" ;;
    '') say "$controller answered $1, not as a Holdfast controller does" ;;
    *) say "controller_unreachable: $explanation" ;;
  esac
}

# One field of a small JSON answer.
field() { sed -n "s/.*\"$1\": \{0,1\}\"\{0,1\}\([^\",}]*\)\"\{0,1\}[,}].*/\1/p" "$2" | head -n 1; }

fetch() {
  status=$(request "$1" "$2") || die "$(explain "${status:-nothing}")"
  [ "$status" = 200 ] && return 0
  refusal=$(sed -n 's/.*"message":"\([^"]*\)".*/\1/p' "$2" 2>/dev/null | head -n 1)
  [ -n "$refusal" ] || die "$controller answered $status at $1, not as a Holdfast controller does"
  die "$(field code "$2"): $refusal"
}

# report OUTCOME DETAIL: the controller's page shows it; that it cannot be told is no failure of its own.
report() {
  [ -n "$code" ] && [ -n "$staging" ] || return 0
  report_text=$(printf '%s' "$2" | tr '\n\r\t' '   ' | tr -d '\042\134' | cut -c 1-400)
  request /v1/node/pairing "$staging/report" -H 'content-type: application/json' \
    --data "{\"report\":{\"phase\":\"$phase\",\"outcome\":\"$1\",\"detail\":\"$report_text\"}}" >/dev/null 2>&1 || true
}

begin() {
  phase=$1
  say "==> $1"
  report begun ''
}

finished() { report 'done' "$1"; }

# ---- phases ----------------------------------------------------------------------------------------------------------

look() {
  for tool in curl tar gzip sed tr cut head id uname mkdir rm mv cp chmod cmp; do
    have "$tool" || die "$tool is not here, and is needed"
  done
  architecture
  hash_tool
  case "$agent_hash:$runtime_hash" in
    :* | *:) die "this controller has nothing for $arch: run there: npm run bundle -- --arch $arch" ;;
  esac
  service_manager
  [ ! -e "$root/node/agent.json" ] || is_new=no
  if [ -z "$code" ] && [ "$is_new" = yes ] && [ "$is_dry" = no ]; then
    die 'this machine is not paired yet and there is no pairing code: export HOLDFAST_PAIRING_CODE first (holdfast node pair NAME makes one)'
  fi
}

plan() {
  say "Holdfast $VERSION on $(uname -n), $arch, $kind layout"
  note "program   $prefix"
  note "data      $root"
  note "settings  $settings/agent.env"
  case $manager in
    none) note 'service   none: no systemd here; the agent runs in a terminal' ;;
    *) note "service   $unit" ;;
  esac
  if [ "$kind" = system ]; then note "accounts  $ACCOUNT, $JOB_ACCOUNT"; fi
  if [ "$is_new" = yes ]; then note 'pairing   with the code'; else note 'pairing   stays as it is, unless the code is a new one'; fi
}

# Below the prefix, never in /tmp: what is mounted noexec, or labelled for temporary files, is not executed.
make_staging() {
  make_directory "${prefix%/*}" 755
  make_directory "$prefix" 755
  take_lock
  staging=$prefix/.new.$$
  mkdir "$staging" || die "cannot write $prefix"
}

# Two at once would take each other's files away.
take_lock() {
  if ! mkdir "$prefix/.lock" 2>/dev/null; then
    holder=$(cat "$prefix/.lock/pid" 2>/dev/null || true)
    if [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; then die "another bootstrap runs on this machine (pid $holder)"; fi
    mkdir -p "$prefix/.lock" || die "cannot write $prefix"
  fi
  lock=$prefix/.lock
  echo "$$" >"$lock/pid"
}

# make_directory PATH MODE: each level that is not there; noted, so that a failure takes it away again.
make_directory() {
  [ ! -d "$1" ] || return 0
  case ${1%/*} in '') ;; *) make_directory "${1%/*}" 755 ;; esac
  mkdir "$1" || die "cannot make $1"
  chmod "$2" "$1"
  undo="directory:$1
$undo"
}

fetch_all() {
  if [ -n "$authority" ]; then
    fetch /v1/authority.pem "$staging/trust.pem"
    [ "$(hash_of "$staging/trust.pem")" = "$authority" ] ||
      die "the authority of $controller is not the one in the command: somebody else answers there"
    trust=$staging/trust.pem
  fi
  fetch_file agent "$agent_hash" "$staging/agent.tar.gz"
  (umask 022 && cd "$staging" && gzip -dc agent.tar.gz | tar -xf -) || die 'the agent cannot be unpacked: is the disk full?'
  [ -f "$staging/holdfast/src/bin/holdfast.js" ] || die 'the agent is not what it should be'
  if [ -f "$runtime" ] && [ "$(hash_of "$runtime")" = "$runtime_hash" ]; then
    note 'runtime: the right one is here already'
    probe "$runtime"
    return 0
  fi
  fetch_file runtime "$runtime_hash" "$staging/node"
  chmod 755 "$staging/node"
  probe "$staging/node"
}

fetch_file() {
  fetch "/v1/node/$1?arch=$arch" "$3"
  fetched_hash=$(hash_of "$3")
  [ "$fetched_hash" = "$2" ] || die "$1: what was fetched is not what this script names ($fetched_hash): fetch the script again"
  note "$1: fetched, its hash is right"
}

# Before anything is changed: does the runtime run here at all?
probe() {
  if probe_text=$("$1" --version 2>&1); then return 0; fi
  for musl in /lib/ld-musl-*; do
    [ ! -e "$musl" ] || die 'this system has musl instead of glibc: the runtime needs glibc 2.28 or newer'
  done
  case $probe_text in
    *GLIBC*) die "the C library of this system is too old: $(printf '%s' "$probe_text" | head -n 1)" ;;
    *ermission*) die "$prefix is on a file system that may not execute programs (noexec)" ;;
    *) die "the runtime does not run here: $(printf '%s' "$probe_text" | head -n 1)" ;;
  esac
}

nologin() {
  for shell in /usr/sbin/nologin /sbin/nologin /bin/false; do
    [ ! -x "$shell" ] || break
  done
  printf '%s\n' "$shell"
}

make_account() {
  ! id -u "$1" >/dev/null 2>&1 || return 0
  if have useradd; then
    useradd --system --user-group --no-create-home --home-dir "$2" --shell "$(nologin)" "$1" || die "cannot make the account $1"
  elif have adduser; then
    adduser -S -D -H -h "$2" -s "$(nologin)" "$1" || die "cannot make the account $1"
  else
    die "neither useradd nor adduser is here: make the system account $1 first"
  fi
  undo="account:$1
$undo"
  is_changed=yes
  note "account $1 made"
}

# replace NEW OLD: in one rename each; the old one is kept until the run has succeeded.
replace() {
  if [ -e "$2" ]; then
    mv "$2" "$staging/old.${2##*/}"
    undo="restore:$2
$undo"
  else
    undo="file:$2
$undo"
  fi
  mv "$1" "$2"
}

install_all() {
  if [ "$kind" = system ]; then
    make_account "$ACCOUNT" "$root"
    make_account "$JOB_ACCOUNT" /nonexistent
  fi
  if [ ! -d "$prefix/agent" ] || ! same_tree; then
    replace "$staging/holdfast" "$prefix/agent"
    is_changed=yes
    note "agent $VERSION in $prefix/agent"
  fi
  if [ -f "$staging/node" ]; then
    make_directory "$prefix/runtime" 755
    replace "$staging/node" "$runtime"
    is_changed=yes
    note "runtime in $runtime"
  fi
  printf '%s\n' "$agent_hash" >"$staging/hash"
  chmod 644 "$staging/hash"
  replace "$staging/hash" "$prefix/agent.sha256"
  fetch /v1/bootstrap.sh "$staging/bootstrap.sh"
  chmod 755 "$staging/bootstrap.sh"
  replace "$staging/bootstrap.sh" "$prefix/bootstrap.sh"
  make_directory "$root" 755
  make_directory "$root/node" 700
  if [ -f "$staging/trust.pem" ]; then
    cp "$staging/trust.pem" "$staging/trust.new"
    replace "$staging/trust.new" "$root/node/trust.pem"
    trust=$root/node/trust.pem
  fi
  write_settings
  own_data
  if have restorecon; then restorecon -R "$prefix" "$root" >/dev/null 2>&1 || true; fi
}

same_tree() { [ -f "$prefix/agent.sha256" ] && [ "$(cat "$prefix/agent.sha256")" = "$agent_hash" ]; }

own_data() {
  [ "$kind" = system ] || return 0
  chown "$ACCOUNT:$ACCOUNT" "$root"
  chown -R "$ACCOUNT:$ACCOUNT" "$root/node"
}

# What the shell knows of proxies the service must know, too. A line that is there is never touched.
write_settings() {
  make_directory "$settings" 755
  if [ -f "$settings/agent.env" ]; then cp "$settings/agent.env" "$staging/agent.env"; else : >"$staging/agent.env"; fi
  chmod 600 "$staging/agent.env"
  setting HTTP_PROXY "${http_proxy:-${HTTP_PROXY:-}}"
  setting HTTPS_PROXY "${https_proxy:-${HTTPS_PROXY:-}}"
  setting NO_PROXY "${no_proxy:-${NO_PROXY:-}}"
  if grep -q '^HTTPS\{0,1\}_PROXY=' "$staging/agent.env"; then setting NODE_USE_ENV_PROXY 1; fi
  if [ -f "$settings/agent.env" ] && cmp -s "$staging/agent.env" "$settings/agent.env"; then return 0; fi
  replace "$staging/agent.env" "$settings/agent.env"
  is_changed=yes
}

setting() {
  if [ -z "$2" ] || grep -q "^$1=" "$staging/agent.env"; then return 0; fi
  printf '%s=%s\n' "$1" "$2" >>"$staging/agent.env"
  note "$settings/agent.env: $1"
}

# With the settings of the service, so that what works here works there.
run_program() {
  (
    set -a
    # shellcheck source=/dev/null
    [ ! -r "$settings/agent.env" ] || . "$settings/agent.env"
    set +a
    NODE_DISABLE_COMPILE_CACHE=1
    export NODE_DISABLE_COMPILE_CACHE
    exec "$runtime" "$program" "$@"
  )
}

pair() {
  if [ -z "$code" ]; then
    note 'already paired; no new code was given'
    return 0
  fi
  if ! echo "$code" | run_program enrol --root "$root" --join "$controller" >"$staging/enrol.out" 2>&1; then
    own_data
    die "$(sed 's/^holdfast: //' "$staging/enrol.out" | head -n 1)"
  fi
  own_data
  note "$(head -n 1 "$staging/enrol.out")"
  [ "$is_new" = no ] || undo="paired:
$undo"
}

start() {
  if [ "$manager" = none ] || [ "$is_foreground" = yes ] || [ "$is_started" = no ]; then return 0; fi
  make_directory "$unit_directory" 755
  run_program unit agent --layout "$kind" --account "$ACCOUNT" --root "$root" >"$staging/unit" 2>"$staging/unit.err" ||
    die "the unit cannot be written: $(head -n 1 "$staging/unit.err")"
  chmod 644 "$staging/unit"
  if [ ! -f "$unit" ] || ! cmp -s "$staging/unit" "$unit"; then
    replace "$staging/unit" "$unit"
    is_changed=yes
    note "unit $unit"
  fi
  undo="unit:
$undo"
  control daemon-reload
  control enable --quiet holdfast-agent
  if [ "$kind" = user ] && have loginctl && ! loginctl enable-linger >/dev/null 2>&1; then
    warn "without lingering the agent ends when you log out; an administrator can run: loginctl enable-linger $(id -un)"
  fi
  if [ "$is_changed" = no ] && control --quiet is-active holdfast-agent; then
    note 'the agent runs already, and nothing changed'
  else
    control restart holdfast-agent || die "failed at start: $(why_down)"
  fi
}

why_down() {
  down=$(control show holdfast-agent -p Result -p ExecMainStatus 2>/dev/null | tr '\n' ' ')
  say "$(printf '%s' "$down" | sed -n 's/.*ExecMainStatus=\([0-9]*\).*/\1/p') (${down% }); see: journalctl -u holdfast-agent"
}

# As the node's own account, in this terminal.
run_agent() {
  if [ "$kind" = user ]; then
    run_program agent --root "$root" --on-stop leave
  elif have setpriv; then
    run_program_as setpriv --reuid "$ACCOUNT" --regid "$ACCOUNT" --clear-groups
  else
    run_program_as chroot --userspec="$ACCOUNT:$ACCOUNT" /
  fi
}

run_program_as() {
  (
    set -a
    # shellcheck source=/dev/null
    . "$settings/agent.env"
    set +a
    exec "$@" "$runtime" "$program" agent --root "$root" --on-stop leave
  )
}

# Not this machine's opinion: the controller's.
prove() {
  if [ "$is_started" = no ]; then
    note 'not started, as asked'
    return 0
  fi
  if [ "$manager" = none ] || [ "$is_foreground" = yes ]; then
    [ "$is_foreground" = yes ] || say 'Nothing starts the agent here by itself. Run it with:'
    [ "$is_foreground" = yes ] || say "  sh $prefix/bootstrap.sh --controller $controller --foreground"
    return 0
  fi
  if [ -z "$code" ]; then
    control --quiet is-active holdfast-agent || die "failed at start: $(why_down)"
    return 0
  fi
  tries=0
  while [ "$tries" -lt "$PROVE_TRIES" ]; do
    tries=$((tries + 1))
    status=$(request /v1/node/pairing "$staging/progress" -H 'content-type: application/json' --data '{}') || status=none
    if [ "$status" = 200 ] && [ "$(field online "$staging/progress")" = true ] && [ "$(field version "$staging/progress")" = "$VERSION" ]; then
      note "the controller sees it online, version $VERSION"
      return 0
    fi
    if control --quiet is-failed holdfast-agent; then die "failed at start: $(why_down)"; fi
    sleep 1
  done
  die "the controller does not see this node online with version $VERSION after $PROVE_TRIES s: $(why_down)"
}

# ---- the end ---------------------------------------------------------------------------------------------------------

# Whatever way it ends: with a failure all that was made is taken away again, newest first, and what was replaced is put back.
cleanup() {
  status=$?
  trap - EXIT HUP INT TERM
  if [ "$status" -ne 0 ] && [ -n "$undo" ]; then
    [ -n "$failure" ] || failure="ended with status $status"
    report failed "$failure"
    say 'Undoing what was done:'
    printf '%s' "$undo" | while IFS=: read -r undo_kind undo_what; do undo_one "$undo_kind" "$undo_what" </dev/null || true; done
    if [ "$manager" != none ]; then control daemon-reload >/dev/null 2>&1 || true; fi
    if [ "$is_new" = no ] && [ "$manager" != none ] && [ -f "$unit" ]; then control restart holdfast-agent >/dev/null 2>&1 || true; fi
  elif [ "$status" -ne 0 ]; then
    report failed "$failure"
  fi
  case $staging in '') ;; *) rm -rf "$staging" ;; esac
  case $lock in '') ;; *) rm -rf "$lock" ;; esac
  if [ "$status" -ne 0 ]; then remove_empty; fi
  exit "$status"
}

undo_one() {
  case $1 in
    unit) [ "$is_new" = no ] || control disable --now --quiet holdfast-agent >/dev/null 2>&1 || true ;;
    restore)
      rm -rf "$2"
      mv "$staging/old.${2##*/}" "$2"
      note "put back: $2"
      ;;
    file)
      rm -rf "$2"
      note "removed: $2"
      ;;
    account)
      if have userdel; then userdel "$2" >/dev/null 2>&1 || true; else deluser "$2" >/dev/null 2>&1 || true; fi
      note "removed: account $2"
      ;;
    paired)
      rm -rf "$root/node"
      note "removed: $root/node"
      ;;
  esac
}

# Directories that this run made and that hold nothing now.
remove_empty() {
  printf '%s' "$undo" | while IFS=: read -r undo_kind undo_what; do
    [ "$undo_kind" != directory ] || rmdir "$undo_what" 2>/dev/null || true
  done
}

has_terminal() { (: </dev/tty >/dev/tty) 2>/dev/null; }

ask() {
  [ "$is_yes" = no ] || return 0
  if ! has_terminal; then die "$1 There is no terminal to ask on: say --yes"; fi
  printf '%s [y/N] ' "$1" >/dev/tty
  read -r answer </dev/tty || answer=
  case $answer in y | Y | yes) ;; *) die 'nothing was changed' ;; esac
}

ask_code() {
  code=${HOLDFAST_PAIRING_CODE:-}
  unset HOLDFAST_PAIRING_CODE
  case $code in
    '') ;;
    *[!A-Za-z0-9_-]*) die 'HOLDFAST_PAIRING_CODE holds a character that no pairing code has: copy it again' ;;
  esac
  if [ -n "$code" ] || [ -e "$root/node/agent.json" ] || [ "$is_dry" = yes ]; then return 0; fi
  if ! has_terminal; then return 0; fi
  printf 'Pairing code (holdfast node pair NAME makes one): ' >/dev/tty
  stty -echo </dev/tty 2>/dev/null || true
  read -r code </dev/tty || code=
  stty echo </dev/tty 2>/dev/null || true
  printf '\n' >/dev/tty
}

uninstall() {
  ask "Remove Holdfast from $prefix?"
  if [ -x "$runtime" ] && [ -f "$program" ] && [ -f "$root/node/agent.json" ]; then
    run_program enrol --leave --root "$root" 2>&1 | sed 's/^/    /' || warn 'the controller could not be told'
  fi
  if [ "$manager" != none ] && [ -f "$unit" ]; then
    control disable --now --quiet holdfast-agent >/dev/null 2>&1 || warn 'the service could not be stopped'
  fi
  rm -f "$unit"
  if [ "$manager" != none ]; then control daemon-reload >/dev/null 2>&1 || true; fi
  if [ "$is_purge" = yes ]; then
    rm -rf "$root/node" "$settings/agent.env"
    rmdir "$root" "$settings" 2>/dev/null || note "$root holds more than a node's data and stays"
  fi
  rm -rf "$prefix/agent" "$prefix/agent.sha256" "$prefix/runtime" "$prefix/bootstrap.sh"
  for left in "$prefix"/.new.*; do [ ! -d "$left" ] || rm -rf "$left"; done
  rmdir "$prefix" 2>/dev/null || true
  if [ "$is_purge" = yes ] && [ "$kind" = system ]; then
    for left in "$JOB_ACCOUNT" "$ACCOUNT"; do
      ! id -u "$left" >/dev/null 2>&1 || undo_one account "$left"
    done
  fi
  if [ "$is_purge" = yes ]; then say 'Holdfast is removed, with the data of the node.'; else say "Holdfast is removed; the node's data stays in $root (--uninstall --purge takes it away)."; fi
}

main() {
  parse "$@"
  # From here on no child can eat what is left of this script on standard input.
  exec </dev/null
  layout
  if [ "$is_uninstall" = yes ]; then
    service_manager
    uninstall
    return 0
  fi
  recall
  ask_code
  say '==> look'
  look
  say '==> plan'
  plan
  if [ "$is_dry" = yes ]; then
    say 'Nothing was changed.'
    return 0
  fi
  trap cleanup EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  make_staging
  begin fetch
  fetch_all
  finished "agent $VERSION for $arch, $kind layout, on $(uname -n)"
  begin install
  install_all
  finished "$prefix"
  begin pair
  pair
  finished ''
  begin start
  start
  finished "$manager"
  begin prove
  prove
  finished ''
  undo=''
  if [ "$is_changed" = no ]; then say 'Everything was as it should be.'; else say 'Done.'; fi
  if [ "$is_foreground" = yes ]; then
    rm -rf "$staging" "$lock"
    trap - EXIT HUP INT TERM
    run_agent
  fi
}

main "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is done, phase by phase. Rule: each change is noted in undo before it is made.
# A part of the bootstrap script: bootstrap.ts puts them together, and a test has shellcheck look at the whole.
# shellcheck disable=SC2034,SC2154

tools() {
  missing=
  for tool in awk cat chmod cp curl cut date find grep gzip head id kill ln ls mkdir mv rm rmdir sed sort tail tar tr uname; do
    have "$tool" || missing="$missing $tool"
  done
  [ -z "$missing" ] || die "needed, and not here:$missing"
}

look() {
  architecture
  hash_tool
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
  note "command   $command"
  case $manager in
    none) note 'service   none: no systemd here; the agent runs in a terminal' ;;
    *) note "service   $unit" ;;
  esac
  if [ "$kind" = system ]; then note "accounts  $ACCOUNT, $JOB_ACCOUNT"; fi
  if [ "$is_new" = yes ]; then note 'pairing   with the code'; else note 'pairing   stays as it is, unless the code is a new one'; fi
}

# Below the prefix, never in /tmp: what is mounted noexec, or labelled for temporary files, is not executed.
make_staging() {
  make_directory "$prefix" 755
  take_lock
  for left in "$prefix"/.new.*; do [ ! -d "$left" ] || rm -rf "$left"; done
  mkdir "$prefix/.new.$$" || die "cannot write $prefix"
  staging=$prefix/.new.$$
}

# Two at once would take each other's files away. A link appears in one step with the pid already in it.
take_lock() {
  echo "$$" >"$prefix/.pid.$$" || die "cannot write $prefix"
  if ! ln "$prefix/.pid.$$" "$prefix/.lock" 2>/dev/null; then
    holder=$(cat "$prefix/.lock" 2>/dev/null || true)
    if [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; then
      rm -f "$prefix/.pid.$$"
      die "another bootstrap runs on this machine (pid $holder; if that is something else, remove $prefix/.lock)"
    fi
    rm -f "$prefix/.lock"
    ln "$prefix/.pid.$$" "$prefix/.lock" || die "another bootstrap has just begun on this machine"
  fi
  lock=$prefix/.lock
  rm -f "$prefix"/.pid.*
}

# make_directory PATH MODE: each level that is not there; noted, so that a failure takes it away again.
make_directory() {
  [ ! -d "$1" ] || return 0
  case ${1%/*} in '') ;; *) make_directory "${1%/*}" "$parents" ;; esac
  mkdir "$1" || die "cannot make $1"
  undo="directory:$1
$undo"
  chmod "$2" "$1"
}

fetch_all() {
  if [ -n "$authority" ]; then
    fetch /v1/authority.pem "$staging/trust.pem"
    [ "$(hash_of "$staging/trust.pem")" = "$authority" ] ||
      die "the authority of $controller is not the one in the command: somebody else answers there"
    trust=$staging/trust.pem
  fi
  if ! is_agent_whole; then
    fetch_file agent "$agent_hash" "$staging/agent.tar.gz"
    (umask 022 && cd "$staging" && gzip -dc agent.tar.gz | tar -xf -) || die 'the agent cannot be unpacked: is the disk full?'
    [ -f "$staging/holdfast/src/bin/holdfast.js" ] || die 'the agent is not what it should be'
  fi
  fetch /v1/bootstrap.sh "$staging/bootstrap.sh"
  if [ -f "$runtime" ] && [ -x "$runtime" ] && [ "$(hash_of "$runtime")" = "$runtime_hash" ]; then
    probe "$runtime"
    return 0
  fi
  fetch_file runtime "$runtime_hash" "$staging/node"
  chmod 755 "$staging/node"
  probe "$staging/node"
}

# Of this version, and as it was unpacked: every file of it.
is_agent_whole() {
  [ -f "$prefix/agent.sha256" ] && [ "$(cat "$prefix/agent.sha256")" = "$agent_hash $(tree_hash "$prefix/agent")" ]
}

fetch_file() {
  fetch "/v1/node/$1?arch=$arch" "$3"
  fetched_hash=$(hash_of "$3")
  [ "$fetched_hash" = "$2" ] ||
    die "$1: what was fetched is not what this script names ($fetched_hash): the controller was updated meanwhile, or somebody changes files on the way; fetch the script again"
  note "$1: fetched, its hash is right"
}

# Before anything is changed: does the runtime run here at all?
probe() {
  if has_od=$(od -A n -t x1 -j 18 -N 1 "$1" 2>/dev/null); then
    case $arch:$has_od in
      x64:*b7*) die 'the runtime of this controller is for arm64, and this machine is x64 (wrong file in its dist directory)' ;;
      arm64:*3e*) die 'the runtime of this controller is for x64, and this machine is arm64 (wrong file in its dist directory)' ;;
    esac
  fi
  if probe_text=$("$1" --version 2>&1); then return 0; fi
  case $probe_text in
    *GLIBC*) die "the C library of this system is too old, the runtime needs glibc 2.28: $(printf '%s' "$probe_text" | head -n 1)" ;;
    *ermission*) die "$prefix is on a file system that may not execute programs (noexec)$(elsewhere)" ;;
  esac
  for musl in /lib/ld-musl-*; do
    [ ! -e "$musl" ] || die 'this system has musl instead of glibc: the runtime needs glibc 2.28 or newer'
  done
  die "the runtime does not run here: $(printf '%s' "$probe_text" | head -n 1)"
}

elsewhere() { [ "$kind" = system ] || printf '%s' ': export XDG_DATA_HOME with a place that may'; }

nologin() {
  for shell in /usr/sbin/nologin /sbin/nologin /bin/false; do
    [ ! -x "$shell" ] || break
  done
  printf '%s\n' "$shell"
}

make_account() {
  ! id -u "$1" >/dev/null 2>&1 || return 0
  if have useradd; then
    useradd --system --user-group --no-create-home --home-dir "$2" --comment "$MADE_BY" --shell "$(nologin)" "$1" ||
      die "cannot make the account $1"
  elif have adduser; then
    addgroup -S "$1" 2>/dev/null || true
    adduser -S -D -H -h "$2" -g "$MADE_BY" -s "$(nologin)" -G "$1" "$1" || die "cannot make the account $1"
  else
    die "neither useradd nor adduser is here: make the system account $1 first"
  fi
  undo="account:$1
$undo"
  is_changed=yes
  note "account $1 made"
}

# Accounts that were there before are never removed.
remove_account() {
  grep -q "^$1:.*$MADE_BY" /etc/passwd || return 0
  if have userdel; then userdel "$1" >/dev/null 2>&1 || true; else deluser "$1" >/dev/null 2>&1 || true; fi
  note "removed: account $1"
}

# put FROM TO MODE: written beside its place, then renamed; nothing when the same is there. The old one is kept until the end.
put() {
  if [ -f "$2" ] && [ "$(hash_of "$2")" = "$(hash_of "$1")" ]; then
    chmod "$3" "$2"
    return 0
  fi
  if [ -e "$2" ]; then
    cp -p "$2" "$staging/old.${2##*/}"
    undo="restore:$2
$undo"
  else
    undo="file:$2
$undo"
  fi
  # With the umask of this script nobody else can read it before it has its mode.
  { cp "$1" "$2.new" && chmod "$3" "$2.new" && mv -f "$2.new" "$2"; } || die "cannot write $2"
  is_changed=yes
  note "$2"
}

# swap NEW OLD: the same by one rename each, for what is large and in the prefix.
swap() {
  if [ -e "$2" ]; then
    mv "$2" "$staging/old.${2##*/}"
    undo="restore:$2
$undo"
  else
    undo="file:$2
$undo"
  fi
  mv "$1" "$2" || die "cannot write $2"
  is_changed=yes
}

install_all() {
  if [ "$kind" = system ]; then
    make_account "$ACCOUNT" "$root"
    make_account "$JOB_ACCOUNT" /nonexistent
  fi
  if [ -d "$staging/holdfast" ]; then
    swap "$staging/holdfast" "$prefix/agent"
    note "agent $VERSION in $prefix/agent"
    printf '%s %s\n' "$agent_hash" "$(tree_hash "$prefix/agent")" >"$staging/agent.sha256"
    put "$staging/agent.sha256" "$prefix/agent.sha256" 644
  fi
  if [ -f "$staging/node" ]; then
    make_directory "$prefix/runtime" 755
    swap "$staging/node" "$runtime"
    note "runtime in $runtime"
  fi
  put "$staging/bootstrap.sh" "$prefix/bootstrap.sh" 755
  install_command
  make_directory "$root" 755
  make_directory "$root/node" 700
  own_data
  if [ -f "$staging/trust.pem" ]; then
    keep_trust
    trust=$root/node/trust.pem
  fi
  write_settings
  label "$prefix" "$root" "$settings"
}

# For whoever looks after this machine: holdfast node doctor, holdfast devices status. Another command of this name stays.
install_command() {
  if [ -e "$command" ] && ! is_our_command; then
    note "$command is another program: run $runtime $program instead"
    return 0
  fi
  make_directory "${command%/*}" "$parents"
  printf '#!/bin/sh\n# %s\nexec "%s" "%s" "$@"\n' "$MADE_BY" "$runtime" "$program" >"$staging/holdfast.command"
  put "$staging/holdfast.command" "$command" 755
}

is_our_command() { grep -q "$MADE_BY" "$command" 2>/dev/null; }

# Where SELinux is, files get the label of their place.
label() { if have restorecon; then restorecon -R "$@" >/dev/null 2>&1 || true; fi; }

# What lies in node/ belongs to the node's account, also after somebody ran a command as root there.
own_data() {
  [ "$kind" = system ] || return 0
  chown "$ACCOUNT:$ACCOUNT" "$root"
  for own in "$root/node" "$root/node/"*; do
    [ ! -e "$own" ] || chown -h "$ACCOUNT:$ACCOUNT" "$own"
  done
}

# Written by the node's account: root follows nobody's links in a directory that is not its own.
keep_trust() {
  [ -e "$root/node/trust.pem" ] || undo="file:$root/node/trust.pem
$undo"
  if [ -f "$root/node/trust.pem" ] && [ "$(hash_of "$root/node/trust.pem")" = "$authority" ]; then return 0; fi
  # shellcheck disable=SC2016
  (exec_as_node sh -c 'umask 077; cat >"$1.new" && mv -f "$1.new" "$1"' sh "$root/node/trust.pem" <"$staging/trust.pem") ||
    die "cannot write $root/node/trust.pem"
  is_changed=yes
  note "$root/node/trust.pem"
}

# As the account whose node it is, in place of this process.
exec_as_node() {
  if [ "$kind" = user ]; then
    exec "$@"
  elif have setpriv; then
    exec setpriv --reuid "$ACCOUNT" --regid "$ACCOUNT" --clear-groups "$@"
  else
    exec chroot --userspec="$ACCOUNT:$ACCOUNT" / "$@"
  fi
}

# With the settings of the service, so that what works here works there; in place of this process.
exec_program() {
  cd /
  load_settings
  [ "$kind" = user ] || export HOME="$root"
  export NODE_DISABLE_COMPILE_CACHE=1
  exec_as_node "$runtime" "$program" "$@"
}

# The program says, too, whether a pairing that is here is still good.
pair() {
  pair_status=0
  echo "$code" | (exec_program enrol --root "$root" --join "$controller") >"$staging/enrol.out" 2>&1 || pair_status=$?
  if [ "$pair_status" -ne 0 ]; then
    # The controller may know this key although its answer was lost: then the same code works with the same key only.
    case $pair_status in 69 | 70 | 75 | 1[2-9][0-9]) for staged in "$root"/node/pairing-*; do [ ! -d "$staged" ] || is_key_kept=yes; done ;; esac
    [ "$is_key_kept" = no ] || note "the key in $root/node is kept: run the same command again, with the same code"
    die "$(sed -e 's/^holdfast: //' -e q "$staging/enrol.out")"
  fi
  pair_line=$(head -n 1 "$staging/enrol.out")
  note "$pair_line"
  case $pair_line in
    'paired as'*)
      is_changed=yes is_code_used=yes
      [ "$is_new" = no ] || undo="paired:$pair_line
$undo"
      ;;
  esac
}

# install_unit PART FILE [OPTION ...]
install_unit() {
  unit_part=$1 unit_file=$2
  shift 2
  "$runtime" "$program" unit "$unit_part" --layout "$kind" --account "$ACCOUNT" --job-account "$JOB_ACCOUNT" "$@" \
    >"$staging/unit" 2>"$staging/unit.err" || die "the unit cannot be written: $(head -n 1 "$staging/unit.err")"
  put "$staging/unit" "$unit_file" 644
  label "$unit_file"
}

start() {
  is_running=no is_restarted=no session_before='' last_end=''
  if [ "$manager" = none ] || [ "$is_foreground" = yes ] || [ "$is_started" = no ]; then return 0; fi
  make_directory "$unit_directory" "$parents"
  install_unit agent "$unit" --root "$root"
  install_unit launch-socket "$unit_directory/holdfast-launch.socket"
  install_unit launch "$unit_directory/holdfast-launch@.service"
  undo="unit:
$undo"
  control daemon-reload || die 'systemd does not take the unit'
  control enable --quiet holdfast-launch.socket holdfast-agent || die 'systemd does not enable the unit'
  if [ "$kind" = user ] && have loginctl && ! loginctl enable-linger >/dev/null 2>&1; then
    warn "without lingering the agent ends when you log out; an administrator can run: loginctl enable-linger $(id -un)"
  fi
  if [ "$is_changed" = no ] && control --quiet is-active holdfast-agent; then
    note 'the agent runs already'
  else
    is_changed=yes is_restarted=yes
    if see; then session_before=$(field sessionAt "$staging/self"); fi
    control restart holdfast-agent || die "failed at start: $(why_down)"
  fi
  is_running=yes
}

# The exit code of the agent, and what systemd says.
why_down() {
  down=${last_end:-$(control show holdfast-agent -p Result -p ExecMainStatus 2>/dev/null | tr '\n' ' ')}
  say "$(printf '%s' "$down" | sed -n 's/.*ExecMainStatus=\([0-9]*\).*/\1/p') (${down% }); see: journalctl$(for_user) -u holdfast-agent"
}

for_user() { [ "$kind" = system ] || printf ' --user'; }

# Not this machine's opinion: the controller's.
prove() {
  tries=0
  while [ "$tries" -lt "$PROVE_TRIES" ]; do
    tries=$((tries + 1))
    if is_seen; then return 0; fi
    state=$(control show holdfast-agent -p NRestarts -p ExecMainStatus -p Result | tr '\n' ' ')
    # Between two starts it is told how the last one ended.
    case $state in *ExecMainStatus=0*) ;; *) last_end=$state ;; esac
    restarts=$(printf '%s' "$state" | sed -n 's/.*NRestarts=\([0-9]*\).*/\1/p')
    if [ "${restarts:-0}" -ge "$STARTS_MAX" ] || control --quiet is-failed holdfast-agent; then die "failed at start: $(why_down)"; fi
    sleep 1
  done
  die "the controller does not see this node online with version $VERSION after $PROVE_TRIES s: $(why_down)"
}

# How the controller sees this node, by its own credential: online, with this version, by the agent that was started now.
is_seen() {
  see || return 1
  [ "$(field online "$staging/self")" = true ] && [ "$(field version "$staging/self")" = "$VERSION" ] || return 1
  [ "$is_restarted" = no ] || [ "$(field sessionAt "$staging/self")" != "$session_before" ] || return 1
  note "the controller sees it online, version $VERSION"
}

see() {
  code_kept=$code
  code=''
  request /v1/node/self "$staging/self"
  code=$code_kept
  [ "$status" = 200 ]
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# However it ends, and main. Rule: with a failure all is as it was before; nothing that is not ours is ever removed.
# A part of the bootstrap script: bootstrap.ts puts them together, and a test has shellcheck look at the whole.
# shellcheck disable=SC2034,SC2154

# Whatever way it ends: with a failure all that was made is taken away again, newest first, and what was replaced is put back.
cleanup() {
  ended=$?
  trap - EXIT
  trap '' HUP INT TERM
  if [ "$ended" -ne 0 ]; then
    report failed "${failure:-ended with status $ended}" || true
    case $undo in *file:* | *restore:* | *account:* | *paired:* | *unit:*) say 'Undoing what was done:' ;; esac
    printf '%s' "$undo" | while IFS=: read -r undo_kind undo_what; do undo_one "$undo_kind" "$undo_what" </dev/null || true; done
    # What was there before runs again, as it was.
    case $undo in *unit:*)
      control daemon-reload >/dev/null 2>&1 || true
      [ "$is_new" = yes ] || control restart holdfast-agent >/dev/null 2>&1 || true
      ;;
    esac
  fi
  [ -z "$staging" ] || rm -rf "$staging"
  [ -z "$lock" ] || rm -f "$lock"
  [ "$ended" -eq 0 ] || remove_empty
  exit "$ended"
}

undo_one() {
  case $1 in
    unit) [ "$is_new" = no ] || control disable --now --quiet holdfast-agent holdfast-launch.socket >/dev/null 2>&1 || true ;;
    restore)
      rm -rf "$2" "$2.new"
      mv "$staging/old.${2##*/}" "$2"
      note "put back: $2"
      ;;
    file)
      rm -rf "$2" "$2.new"
      note "removed: $2"
      ;;
    account) [ "$is_key_kept" = yes ] || remove_account "$2" ;;
    paired)
      (exec_program enrol --leave --root "$root") >/dev/null 2>&1 || true
      rm -rf "$root/node"
      note "removed: $root/node ($2, and left again: its name is taken over with holdfast node pair NAME --take-over)"
      ;;
    directory) [ "$2$is_key_kept" != "$root/nodeno" ] || rm -rf "$2" ;;
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
  read -r reply </dev/tty || reply=
  case $reply in y | Y | yes) ;; *) die 'nothing was changed' ;; esac
}

ask_code() {
  if [ -z "$code" ] && [ ! -e "$root/node/agent.json" ] && [ "$is_dry" = no ] && has_terminal; then
    printf 'Pairing code (holdfast node pair NAME makes one): ' >/dev/tty
    trap 'stty echo </dev/tty; exit 130' INT
    stty -echo </dev/tty 2>/dev/null || true
    read -r code </dev/tty || code=
    stty echo </dev/tty 2>/dev/null || true
    trap - INT
    printf '\n' >/dev/tty
  fi
  case $code in *[!A-Za-z0-9_-]*) die 'the pairing code holds a character that no pairing code has: copy it again' ;; esac
}

# Each step also where the one before it found nothing: what is damaged or half gone goes, too.
uninstall() {
  say "To be removed: $prefix, $command, $unit$(if [ "$is_purge" = yes ]; then printf ', %s/node, %s/agent.env' "$root" "$settings"; fi)"
  if [ "$is_dry" = yes ]; then
    say 'Nothing was changed.'
    return 0
  fi
  ask 'Stop the agent, its jobs and models, and remove Holdfast?'
  if [ -d "$prefix" ]; then
    trap cleanup EXIT
    take_lock
  fi
  for service in holdfast-agent.service holdfast-launch.socket; do
    [ "$manager" != none ] || break
    # Where its file is gone already, what runs of it is stopped all the same.
    control disable --now --quiet "$service" >/dev/null 2>&1 || control stop "$service" >/dev/null 2>&1 || true
  done
  if [ -f "$root/node/agent.json" ] && [ -x "$runtime" ]; then
    # The agent is stopped before the controller is told: it would say hello again.
    (exec_program enrol --leave --root "$root") >"$prefix/.leave" 2>&1 || warn 'the controller could not be told:'
    sed 's/^/    /' "$prefix/.leave"
  fi
  rm -f "$unit_directory/holdfast-launch.socket" "$unit_directory/holdfast-launch@.service" "$unit_directory/sockets.target.wants/holdfast-launch.socket"
  rm -f "$unit" "$unit_directory/multi-user.target.wants/holdfast-agent.service" "$unit_directory/default.target.wants/holdfast-agent.service"
  if [ "$manager" != none ]; then control daemon-reload >/dev/null 2>&1 || true; fi
  if [ "$is_purge" = yes ]; then
    rm -rf "$root/node" "$settings/agent.env"
    rmdir "$settings" 2>/dev/null || true
    if [ -d "$root" ]; then rmdir "$root" 2>/dev/null || note "$root holds more than a node's data and stays"; fi
  fi
  if is_our_command; then rm -f "$command"; fi
  rm -rf "$prefix/agent" "$prefix/agent.sha256" "$prefix/runtime" "$prefix/bootstrap.sh" "$prefix"/.new.* "$prefix"/.pid.* "$prefix/.leave" "$prefix/.lock"
  lock=''
  if [ -d "$prefix" ]; then rmdir "$prefix" 2>/dev/null || note "$prefix holds more than Holdfast and stays"; fi
  if [ "$is_purge" = yes ] && [ "$kind" = system ]; then
    for left in "$JOB_ACCOUNT" "$ACCOUNT"; do remove_account "$left"; done
  fi
  if [ "$is_purge" = yes ]; then say 'Holdfast is removed, with the data of the node.'; else say "Holdfast is removed; the node's data stays in $root and $settings (--uninstall --purge takes it away)."; fi
}

main() {
  # Before anything is started: no child ever has it in its environment.
  code=${HOLDFAST_PAIRING_CODE:-}
  unset HOLDFAST_PAIRING_CODE
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
  proxies
  ask_code
  trap cleanup EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  phase=look
  say '==> look'
  tools
  reach
  report begun ''
  look
  finished "$(uname -n)"
  begin plan
  plan
  if [ "$is_dry" = yes ]; then
    say 'Nothing was changed.'
    return 0
  fi
  finished "agent $VERSION for $arch, $kind layout"
  make_staging
  begin fetch
  fetch_all
  finished ''
  begin install
  install_all
  finished "$prefix"
  begin pair
  pair
  finished "$pair_line"
  begin start
  start
  if [ "$is_running" = yes ]; then
    finished "$manager service"
    begin prove
    prove
    finished ''
  else
    finished 'not started by the script'
  fi
  undo=''
  if [ "$is_changed" = no ]; then say 'Everything was as it should be.'; else say 'Done.'; fi
  [ "$is_running" = no ] || return 0
  how_to_run
}

# Where nothing starts the agent by itself.
how_to_run() {
  if [ "$is_foreground" = yes ]; then
    rm -rf "$staging" "$lock"
    trap - EXIT HUP INT TERM
    exec_program agent --root "$root" --on-stop leave
  elif [ "$is_started" = yes ]; then
    say 'Nothing starts the agent here by itself. Run it with:'
    say "  sh $prefix/bootstrap.sh --controller $controller --foreground"
  fi
}

# In braces: cut off anywhere before the last one, it is no command at all.
{
  main "$@"
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How the script talks with the controller. Rule: secrets travel by standard input, to whoever has answered as the controller does.
# A part of the bootstrap script: bootstrap.ts puts them together, and a test has shellcheck look at the whole.
# shellcheck disable=SC2034,SC2154

# Secrets reach curl by its standard input only: neither argv nor a file ever holds them. echo is part of every shell,
# printf is not (mksh), and would have them in its argv. Nobody gets one before he has answered as a controller does.
secret_header() {
  if [ "$is_reached" = no ]; then
    return 0
  elif [ -n "$code" ]; then
    echo "header = \"holdfast-pairing-code: $code\""
  elif [ -r "$root/node/credential" ]; then
    read -r credential <"$root/node/credential" || true
    case $credential in hfn_*[!A-Za-z0-9_-]*) ;; hfn_*) echo "header = \"authorization: Bearer $credential\"" ;; esac
  fi
}

# request PATH OUTPUT [curl options]: with the secret, trusting exactly the controller that was named. Sets status, 000 when
# nothing answered, and trouble, curl's words for that.
request() {
  request_path=$1 request_output=$2
  shift 2
  if [ -n "$trust" ]; then set -- --cacert "$trust" "$@"; elif [ -n "$pin" ]; then set -- -k --pinnedpubkey "$pin" "$@"; fi
  # The limits of a short call; a later option wins.
  answer=$(secret_header | curl -q -K - -sS -g --connect-timeout 6 --max-time 8 -o "$request_output" -w '\nstatus %{http_code}\n' "$@" \
    "$controller$request_path" 2>&1) || true
  status=$(printf '%s\n' "$answer" | sed -n 's/^status //p' | tail -n 1)
  trouble=$(printf '%s\n' "$answer" | sed -n '/^curl: /p' | head -n 1)
  status=${status:-000}
  [ -z "$trouble" ] || status=000
}

# What went wrong between here and there, in words.
explain() {
  case $trouble in
    *'not yet valid'* | *'expired'*) say "clock_off: $trouble: is the clock of this machine right? It says $(date -u)" ;;
    *'pinned'*) say "another server answers at $controller: its key is not the one in the command" ;;
    *certificate* | *SSL*) say "the certificate of $controller is not accepted: $trouble; the controller's --url must be the name that nodes use" ;;
    *) say "controller_unreachable: $controller: $trouble" ;;
  esac
}

# One field of a small JSON answer.
field() { sed -n "s/.*\"$1\": \{0,1\}\"\{0,1\}\([^\",}]*\)\"\{0,1\}[,}]\{0,1\}.*/\1/p" "$2" | head -n 1; }

# Before anything is done: does a Holdfast controller answer there, and not a login page?
reach() {
  request /v1/health -
  [ "$status" != 000 ] || die "$(explain)"
  case $status$answer in 200*'"status":"ok"'*)
    is_reached=yes
    return 0
    ;;
  esac
  die "$controller answered $status, not as a Holdfast controller does: is there a proxy or a login page in between?"
}

fetch() {
  request "$1" "$2" --max-time 900 --speed-limit 1000 --speed-time 20
  [ "$status" != 000 ] || die "$(explain)"
  [ "$status" != 200 ] || return 0
  refusal=$(field code "$2")
  case $refusal in
    pairing_code_*)
      # An old code in the environment of a machine that is paired.
      if [ "$is_new" = no ] && [ "$is_code_used" = no ] && [ -r "$root/node/credential" ]; then
        note "the code is not good ($refusal): going on with the pairing that is here"
        code=''
        fetch "$1" "$2"
        return 0
      fi
      ;;
    '') die "$controller answered $status at $1, not as a Holdfast controller does: is there a proxy or a login page in between?" ;;
  esac
  die "$refusal: $(sed -n 's/.*"message":"\([^"]*\)".*/\1/p' "$2" | head -n 1)"
}

# report OUTCOME DETAIL: people see it at the controller; that it cannot be told is no failure of its own.
report() {
  if [ -z "$code" ] || [ "$is_reached" = no ] || [ "$is_dry" = yes ] || [ "$is_mute" = yes ]; then return 0; fi
  report_text=$(printf '%s' "$2" | tr -c ' -~' ' ' | tr -d '\042\134' | cut -c 1-400)
  request /v1/node/pairing /dev/null -H 'content-type: application/json' \
    --data "{\"report\":{\"phase\":\"$phase\",\"outcome\":\"$1\",\"detail\":\"$report_text\"}}"
  # One that is gone is not waited for again and again.
  [ "$status" != 000 ] || is_mute=yes
}

begin() {
  phase=$1
  say "==> $1"
  report begun ''
}

finished() { report 'done' "$1"; }

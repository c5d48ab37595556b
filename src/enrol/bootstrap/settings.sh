#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the service is told by its file and what this shell knows of proxies. Rule: a file of settings is parsed, never run, and a line
# that is there is never touched.
# A part of the bootstrap script: bootstrap.ts puts them together, and a test has shellcheck look at the whole.
# shellcheck disable=SC2034,SC2154

# setting_of NAME: as the service reads it. The file is parsed, never run.
setting_of() {
  [ -r "$settings/agent.env" ] || return 0
  sed -n "s/^$1=//p" "$settings/agent.env" | tail -n 1 | sed -e 's/^"\(.*\)"$/\1/' -e "s/^'\(.*\)'\$/\1/"
}

# What the service is told by its file, else what this shell knows: what works here works there.
proxies() {
  proxy_http=$(setting_of HTTP_PROXY) proxy_https=$(setting_of HTTPS_PROXY) proxy_not=$(setting_of NO_PROXY)
  proxy_http=${proxy_http:-${http_proxy:-${HTTP_PROXY:-}}}
  proxy_https=${proxy_https:-${https_proxy:-${HTTPS_PROXY:-}}}
  proxy_not=$(printf '%s' "${proxy_not:-${no_proxy:-${NO_PROXY:-}}}" | tr -d ' ')
  case $proxy_not in */*) spell_out ;; esac
  unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY no_proxy NO_PROXY all_proxy ALL_PROXY
  # curl takes http_proxy in lower case only.
  [ -z "$proxy_http" ] || export http_proxy="$proxy_http" HTTP_PROXY="$proxy_http"
  [ -z "$proxy_https" ] || export https_proxy="$proxy_https" HTTPS_PROXY="$proxy_https"
  [ -z "$proxy_not" ] || export no_proxy="$proxy_not" NO_PROXY="$proxy_not"
}

# The agent's runtime does not know networks (10.0.0.0/8) in NO_PROXY: a controller that lies in one is added by its address.
spell_out() {
  host=${controller#*//}
  host=${host%%:*}
  case $host in *[!0-9.]*)
    warn "NO_PROXY names a network ($proxy_not): the agent compares names only, so name $host there if it is to be reached directly"
    return 0
    ;;
  esac
  if printf '%s\n' "$proxy_not" | tr ',' '\n' | awk -v host="$host" '
    function number(address,  part) { split(address, part, "."); return ((part[1] * 256 + part[2]) * 256 + part[3]) * 256 + part[4] }
    /^[0-9.]+\/[0-9]+$/ {
      split($0, net, "/"); size = 2 ^ (32 - net[2])
      if (int(number(net[1]) / size) == int(number(host) / size)) found = 1
    }
    END { exit !found }'; then
    case ",$proxy_not," in *",$host,"*) ;; *) proxy_not=$proxy_not,$host ;; esac
  fi
}

# A line that is there is never touched.
write_settings() {
  make_directory "$settings" "$parents"
  if [ -f "$settings/agent.env" ]; then cp "$settings/agent.env" "$staging/agent.env"; else : >"$staging/agent.env"; fi
  setting HTTP_PROXY "$proxy_http"
  setting HTTPS_PROXY "$proxy_https"
  setting NO_PROXY "$proxy_not"
  if grep -q '^HTTPS\{0,1\}_PROXY=' "$staging/agent.env"; then setting NODE_USE_ENV_PROXY 1; fi
  put "$staging/agent.env" "$settings/agent.env" 600
}

setting() {
  if [ -z "$2" ] || grep -q "^$1=" "$staging/agent.env"; then return 0; fi
  case $2 in *[!A-Za-z0-9:/.,_@%~*+=\&?-]*)
    warn "$1 holds a character that is not taken over: write it into $settings/agent.env by hand"
    return 0
    ;;
  esac
  printf '%s=%s\n' "$1" "$2" >>"$staging/agent.env"
}

# Exports what the service would get.
load_settings() {
  unset http_proxy https_proxy no_proxy
  [ -r "$settings/agent.env" ] || return 0
  while IFS='=' read -r setting_name setting_text || [ -n "$setting_name" ]; do
    case $setting_name in '' | [!A-Za-z_]* | *[!A-Za-z0-9_]*) continue ;; esac
    setting_text=$(setting_of "$setting_name")
    export "$setting_name=$setting_text"
  done <"$settings/agent.env"
}

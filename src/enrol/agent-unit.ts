// SPDX-License-Identifier: Apache-2.0
// The systemd unit of an agent as text, for a system install and for a user's own. What the agent starts is started by systemd
// (launch-unit.ts), so nothing of it shares this sandbox and a restart or an upgrade of the agent disturbs none of it. What is
// left open here, and why, stands in docs/agent.md. Source: systemd.kill(5), systemd.service(5), systemd.exec(5).

import { LAUNCH_SOCKET } from "./launch-unit.ts";
import { type Layout, quote } from "./unit-text.ts";

export type AgentUnit = {
  readonly layout: Layout;
  /** The runtime, absolute. */
  readonly node: string;
  /** src/bin/holdfast.js of the installation, absolute. */
  readonly program: string;
  /** Of a system install. */
  readonly account: string;
  /** Of a system install with jobs: whom they run as. */
  readonly jobAccount: string;
  readonly root: string;
  /** Scenes only, without a controller. */
  readonly isAlone: boolean;
};

/** What a restart does not mend: configuration, a refused credential, another agent on this root, no way to start a job. */
export const AGENT_STAYS_DOWN = [64, 77, 78, 83, 84, 86, 98, 126];

/** What holds for both, because it needs no namespace: the system calls of a runtime, and none that changes the machine. */
const WITHOUT_NAMESPACES = `NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
# @pkey: V8 dies without. @chown: a launch directory is given to the group of its job.
SystemCallFilter=@system-service @pkey
SystemCallFilter=~@privileged @resources
SystemCallFilter=@chown
SystemCallErrorNumber=EPERM
UMask=0077`;

export function agentUnit(unit: AgentUnit): string {
  return unit.layout === "system" ? systemUnit(unit) : userUnit(unit);
}

function systemUnit(unit: AgentUnit): string {
  const { account, jobAccount, root, isAlone } = unit;
  return `# Holdfast agent. Printed by: holdfast unit agent --layout system
${systemInstall(unit)}
# An upgrade: holdfast upgrade --check, replace the files, systemctl restart holdfast-agent, holdfast upgrade --check
[Unit]
Description=Holdfast agent
Documentation=${documentation(unit)}
Wants=network-online.target
After=network-online.target
Requires=holdfast-launch.socket
After=holdfast-launch.socket
RequiresMountsFor=${root}
StartLimitIntervalSec=0

[Service]
User=${account}
Group=${account}
${isAlone ? "" : `# By this group files are shared with jobs.\nSupplementaryGroups=${jobAccount}\n`}${service(unit, isAlone ? `--launch-socket ${LAUNCH_SOCKET}` : `--job-account ${quote(jobAccount)}`)}
# The kernel's killer takes a job or a model before it takes the agent.
OOMScoreAdjust=-500
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ReadWritePaths=${root}
ProtectHome=read-only
PrivateTmp=yes
PrivateMounts=yes
# To look at GPUs; no block device. ProtectClock= alone would shut every device out.
DeviceAllow=char-* rw
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
${WITHOUT_NAMESPACES}

[Install]
WantedBy=multi-user.target
`;
}

function systemInstall({ root, account, jobAccount, isAlone }: AgentUnit): string {
  const home = `/var/lib/${jobAccount}`;
  const options = `${isAlone ? "--alone " : ""}--into /etc/systemd/system`;
  return [
    `useradd --system --user-group --home-dir ${root} --shell /usr/sbin/nologin ${account}`,
    ...(isAlone
      ? []
      : [`useradd --system --user-group --home-dir ${home} --create-home --shell /usr/sbin/nologin ${jobAccount}`]),
    `install -d -o ${account} -g ${account} ${root}`,
    `holdfast unit agent ${options}       # this one, holdfast-launch.socket and holdfast-launch@.service`,
    "systemctl daemon-reload && systemctl enable --now holdfast-launch.socket holdfast-agent",
  ]
    .map((line) => `#   ${line}`)
    .join("\n");
}

/**
 * Without PrivateUsers=, and so without ProtectSystem= and the like, which do nothing without it in a user's unit: each start
 * would be another user namespace, from which the models of the start before cannot be proved (docs/decisions/0014).
 */
function userUnit(unit: AgentUnit): string {
  return `# Holdfast agent of one user. Printed by: holdfast unit agent --layout user
#   holdfast unit agent --layout user --into ~/.config/systemd/user
#   systemctl --user daemon-reload && systemctl --user enable --now holdfast-launch.socket holdfast-agent
# It ends with the user's last session unless the user lingers: loginctl enable-linger (once, by the user or by root).
[Unit]
Description=Holdfast agent
Documentation=${documentation(unit)}
Requires=holdfast-launch.socket
After=holdfast-launch.socket
StartLimitIntervalSec=0

[Service]
${service(unit, "--launch-socket %t/holdfast/launch")}
${WITHOUT_NAMESPACES}

[Install]
WantedBy=default.target
`;
}

function documentation({ program }: AgentUnit): string {
  return `file:${program.replace(/src\/bin\/holdfast\.js$/, "docs/agent.md")}`;
}

/** What every agent's unit says. `launches`: how it has processes started. */
function service({ layout, node, program, root, isAlone }: AgentUnit, launches: string): string {
  const command = [node, program, "agent", ...(isAlone ? ["--alone"] : ["--on-stop", "leave"])].map(quote).join(" ");
  return `Type=exec
# The one place that names the root; commands find it by --root or by this same variable.
Environment=HOLDFAST_ROOT=${root}
Environment=NODE_DISABLE_COMPILE_CACHE=1
# Proxies, HOLDFAST_LOG_LEVEL and the like; 0600 where it holds a secret.
EnvironmentFile=-${layout === "system" ? "/etc" : "%E"}/holdfast/agent.env
ExecStart=${command} ${launches}
# Only the agent itself: whatever else were there goes on.
KillMode=process
KillSignal=SIGTERM
TimeoutStopSec=30
Restart=always
RestartSec=1
RestartPreventExitStatus=${AGENT_STAYS_DOWN.join(" ")}
OOMPolicy=continue`;
}

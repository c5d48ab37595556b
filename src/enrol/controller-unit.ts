// SPDX-License-Identifier: Apache-2.0
// The systemd unit of a controller as text: an account of its own that may do nothing but listen, talk to the database and
// write its own directory. Relaxed from the strictest: memory may be made executable (V8 compiles), nothing else.
// Source: systemd.exec(5), systemd.service(5).

import { quote } from "./unit-text.ts";

export type ControllerUnit = {
  /** The runtime, absolute. */
  readonly node: string;
  /** src/bin/holdfast.js of the installation, absolute. */
  readonly program: string;
  readonly account: string;
  /** HOST:PORT */
  readonly listen: string;
  /** With its own PostgreSQL in /var/lib/holdfast; else DATABASE_URL comes from the environment file. */
  readonly isEmbedded: boolean;
};

/** Secrets such as DATABASE_URL: root's, 0600, read by systemd before it drops its rights. */
export const CONTROLLER_ENVIRONMENT = "/etc/holdfast/controller.env";

export function controllerUnit({ node, program, account, listen, isEmbedded }: ControllerUnit): string {
  const command = [node, program, "controller", ...(isEmbedded ? ["--embedded"] : [])].map(quote).join(" ");
  return `# Holdfast controller. Printed by: holdfast unit controller
#   useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin ${account}
#   holdfast unit controller > /etc/systemd/system/holdfast-controller.service
#   systemctl daemon-reload && systemctl enable --now holdfast-controller
[Unit]
Description=Holdfast controller
Documentation=file:${program.replace(/src\/bin\/holdfast\.js$/, "docs/operating.md")}
Wants=network-online.target
After=network-online.target postgresql.service
StartLimitIntervalSec=0

[Service]
Type=exec
User=${account}
Group=${account}
${isEmbedded ? "" : `# DATABASE_URL and DATABASE_OWNER_URL.\n`}EnvironmentFile=${isEmbedded ? "-" : ""}${CONTROLLER_ENVIRONMENT}
Environment=HOLDFAST_ROOT=/var/lib/holdfast
Environment=HOLDFAST_CONTEXT_FILE=/var/lib/holdfast/contexts.json
Environment=HOLDFAST_LISTEN=${listen}
Environment=NODE_DISABLE_COMPILE_CACHE=1
ExecStart=${command}
# It ends long polls and streams, closes and exits within 2 s; its PostgreSQL, if it has one, within 10 s more.
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=20
Restart=always
RestartSec=1
# What a restart does not mend: configuration, another version's schema, rights.
RestartPreventExitStatus=64 78 83 86 87 89 90 91 92 93 94
StateDirectory=holdfast
StateDirectoryMode=0755
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`;
}

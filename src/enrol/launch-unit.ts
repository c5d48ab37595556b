// SPDX-License-Identifier: Apache-2.0
// The two units by which systemd starts what an agent runs: a socket that only the agent may connect to, and a service of which
// each connection gets its own, the shim of one job or model. Rule: account, groups and rights of a job stand here, in root's
// files, and nowhere that an agent could write. Source: systemd.socket(5), systemd.exec(5), capabilities(7).

import { type Layout, quote } from "./unit-text.ts";

/** Of a system install; a user's own is in the user's runtime directory. */
export const LAUNCH_SOCKET = "/run/holdfast/launch";

export type LaunchUnit = {
  readonly layout: Layout;
  /** The shim of the installation, absolute. */
  readonly shim: string;
  readonly account: string;
  readonly jobAccount: string;
  /** Models only. */
  readonly isAlone: boolean;
};

/** More than an agent can have at once. */
const CONNECTIONS_MAX = 8192;

export function launchSocketUnit({ layout, account }: LaunchUnit): string {
  const owner = layout === "system" ? `SocketUser=${account}\nSocketGroup=${account}\n` : "";
  return `# How a Holdfast agent has jobs and models started. Printed by: holdfast unit launch-socket --layout ${layout}
[Unit]
Description=Start of Holdfast jobs and models

[Socket]
ListenStream=%t/holdfast/launch
${owner}SocketMode=0600
DirectoryMode=0755
Accept=yes
MaxConnections=${CONNECTIONS_MAX}
MaxConnectionsPerSource=${CONNECTIONS_MAX}
# A burst of jobs is no fault.
TriggerLimitIntervalSec=0

[Install]
WantedBy=sockets.target
`;
}

export function launchUnit({ layout, shim, account, jobAccount, isAlone }: LaunchUnit): string {
  const becomes = layout === "system" && !isAlone ? jobAccount : undefined;
  const command = [shim, "--gate", ...(becomes === undefined ? [] : [becomes])].map(quote).join(" ");
  return `# A Holdfast job or model and the shim that is its parent. Printed by: holdfast unit launch --layout ${layout}
[Unit]
Description=Holdfast launch
CollectMode=inactive-or-failed

[Service]
Type=exec
${layout === "user" ? "" : rights(account, becomes)}ExecStart=${command}
StandardInput=socket
StandardOutput=null
StandardError=null
# The shim ends what it started in order; what outlives the shim is killed.
KillMode=mixed
TimeoutStopSec=30
# A group of its own for what runs, below the shim's.
Delegate=yes
OOMPolicy=continue
NoNewPrivileges=yes
UMask=0077
`;
}

function rights(account: string, jobAccount: string | undefined): string {
  const groups = "# A group that a GPU belongs to (video, render) is added here: SupplementaryGroups=\n";
  if (jobAccount === undefined) return `User=${account}\nGroup=${account}\n${groups}`;
  return `# The shim is the agent's, so a job cannot touch it; a job becomes ${jobAccount}, and nothing that is started keeps a right.
User=${account}
Group=${jobAccount}
${groups}AmbientCapabilities=CAP_SETUID CAP_KILL
CapabilityBoundingSet=CAP_SETUID CAP_KILL
`;
}

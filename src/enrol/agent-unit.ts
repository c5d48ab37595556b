// SPDX-License-Identifier: Apache-2.0
// The systemd unit of an agent as text. KillMode=process: jobs and model servers outlive the agent, so its restart and its
// upgrade disturb none of them. Source: systemd.kill(5), systemd.service(5).

import { quote } from "./unit-text.ts";

export type AgentUnit = {
  /** The runtime, absolute. */
  readonly node: string;
  /** src/bin/holdfast.js of the installation, absolute. */
  readonly program: string;
  readonly account: string;
  readonly root: string;
  /** Scenes only, without a controller. */
  readonly isAlone: boolean;
};

export function agentUnit({ node, program, account, root, isAlone }: AgentUnit): string {
  const command = [node, program, "agent", ...(isAlone ? ["--alone"] : ["--on-stop", "leave"])].map(quote).join(" ");
  return `# Holdfast agent. Printed by: holdfast unit agent
#   useradd --system --home-dir ${root} --shell /usr/sbin/nologin ${account}
#   holdfast unit agent > /etc/systemd/system/holdfast-agent.service
#   systemctl daemon-reload && systemctl enable --now holdfast-agent
# An upgrade: holdfast upgrade --check, replace the files, systemctl restart holdfast-agent, holdfast upgrade --check
[Unit]
Description=Holdfast agent
Documentation=file:${program.replace(/src\/bin\/holdfast\.js$/, "docs/scenes.md")}
Wants=network-online.target
After=network-online.target
RequiresMountsFor=${root}
StartLimitIntervalSec=0

[Service]
Type=exec
User=${account}
Group=${account}
# The one place that names the root; commands find it by --root or by this same variable.
Environment=HOLDFAST_ROOT=${root}
Environment=NODE_DISABLE_COMPILE_CACHE=1
ExecStart=${command}
# Only the agent: what it started has its own process groups and goes on.
KillMode=process
KillSignal=SIGTERM
TimeoutStopSec=30
Restart=always
RestartSec=1
# What a restart does not mend: configuration, a refused credential, another agent on this root.
RestartPreventExitStatus=64 77 78 83 84 86
# Jobs and models get a group each below this one.
Delegate=yes
# The kernel's killer takes a job before it takes the agent.
OOMScoreAdjust=-500
OOMPolicy=continue
UMask=0077

[Install]
WantedBy=multi-user.target
`;
}

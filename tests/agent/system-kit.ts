// SPDX-License-Identifier: Apache-2.0
// A node as root installs it, under a real systemd: its accounts and units are made by the very lines that `holdfast unit agent`
// prints, and its controller is a test's world.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { TestContext } from "node:test";
import type { Node } from "../../src/protocol/node-schema.ts";
import { bootSystemd, type System } from "../kit/systemd.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";

export const UNIT = "holdfast-agent.service";
export const ROOT = "/var/lib/holdfast";
/** The runtime as it is seen in the system. */
const checkout = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
/** As it is reached there: the checkout is in /opt/holdfast, and may be below a /tmp here that services have none of. */
export const runtime = fs.realpathSync(process.execPath).replace(fs.realpathSync(checkout), "/opt/holdfast");
const PROGRAM = "/opt/holdfast/src/bin/holdfast.js";
const SLOW = { withinMs: 60_000 };

export type Installed = {
  readonly system: System;
  readonly world: World;
  readonly nodeId: string;
  /** The pairing code that was used. */
  readonly code: string;
  /** A file of the system, as this process reaches it. */
  readonly fileOf: (file: string) => string;
  readonly node: () => Promise<Node>;
  /** The agent's, as the system has it, also after its end. */
  readonly mainPid: () => number;
  readonly isThere: (pid: number) => boolean;
  /** Of the journal, everything that the agent wrote. */
  readonly journal: () => string;
};

/** Everything up to the start: accounts, units, settings, pairing. */
export async function installNode(
  t: TestContext,
  settings = "",
  onBoot: (system: System) => void = () => {},
): Promise<Installed> {
  const [system, world] = await Promise.all([bootSystemd(t), createWorld(t)]);
  onBoot(system);
  const fileOf = (file: string): string => path.join(system.root, file);
  fs.writeFileSync(fileOf("/usr/local/bin/holdfast"), `#!/bin/sh\nexec ${runtime} ${PROGRAM} "$@"\n`, { mode: 0o755 });
  fs.mkdirSync(fileOf("/etc/holdfast"), { recursive: true });
  fs.writeFileSync(fileOf("/etc/holdfast/agent.env"), settings, { mode: 0o600 });
  const text = system.ok("/usr/local/bin/holdfast", "unit", "agent");
  const lines = [...text.matchAll(/^# {3}(.+)$/gm)].map(([, line = ""]) => line);
  assert.equal(lines.length, 5, "the lines that install it");
  const { code } = await world.admin.call("pairingCreate", { body: { name: "one" } });
  for (const line of lines.slice(0, 4)) system.ok("sh", "-euc", line.replace(/^holdfast /, "/usr/local/bin/holdfast "));
  const enrol = ["/usr/local/bin/holdfast", "enrol", "--root", ROOT, "--join", world.url];
  const enrolled = await system.runBeside(enrol, { as: "holdfast", input: `${code}\n` });
  assert.equal(enrolled.code, 0, enrolled.stderr);
  const [node] = (await world.admin.call("nodeList", {})).items;
  assert.ok(node !== undefined);
  return {
    system,
    world,
    nodeId: node.id,
    code,
    fileOf,
    node: () => world.admin.call("nodeShow", { params: { nodeId: node.id } }),
    mainPid: () => Number(fs.readFileSync(fileOf(`${ROOT}/node/agent.lock`), "utf8")),
    isThere: (pid) => fs.existsSync(fileOf(`/proc/${pid}`)),
    journal: () => system.ok("journalctl", "--no-pager", "--output=cat", `--unit=${UNIT}`),
  };
}

/** By the last of the printed lines; resolves when the controller sees it. */
export async function startInstalled({ system, node, journal }: Installed): Promise<void> {
  system.ok("sh", "-euc", "systemctl daemon-reload && systemctl enable --now holdfast-launch.socket holdfast-agent");
  await until("the node is online", async () => (await node()).online, SLOW).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${journal()}`, { cause: error });
  });
}

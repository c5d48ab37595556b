// SPDX-License-Identifier: Apache-2.0
// `holdfast upgrade --check`: who runs, by identity, before and after. Rule: the same pid is no proof; boot, pid and start are.

import fs from "node:fs";
import path from "node:path";
import type { UpgradeCheck } from "../cli/programs.ts";
import type { SceneStatus } from "../scenes/operations.ts";
import { stateDirectory } from "../scenes/state.ts";
import { fileFailure, makeDirectory } from "../std/files.ts";
import { bootId } from "../std/process.ts";
import { sceneOperation, type SceneOptions } from "./scene.ts";
import { verifyScene } from "./scene-verify.ts";
import { gatewayIdentity } from "./scene-gateways.ts";
import { type Environment, rootFrom } from "./settings.ts";

/** Name to "boot/pid/start". */
type Note = Readonly<Record<string, string>>;

export async function upgradeCheck(options: SceneOptions, env: Environment): Promise<UpgradeCheck> {
  const root = rootFrom(env, options.root);
  const file = path.join(stateDirectory(root), "upgrade.json");
  const job = { emit: () => {}, signal: new AbortController().signal };
  const status = (await sceneOperation({ root, operation: { op: "status" } }, env, job)) as SceneStatus;
  const now = await noteOf(root, status);
  const before = readNote(file);
  const said = Object.entries(now).map(([name, identity]) => `${name.padEnd(28)} pid ${identity.split("/")[1] ?? ""}`);
  if (before === undefined) {
    writeNote(root, file, now);
    return {
      kind: "noted",
      lines: [...said, "Noted. Replace the files, restart the agent, then: holdfast upgrade --check"],
    };
  }
  fs.rmSync(file, { force: true });
  const changes = differences(before, now);
  const parity = status.active === null ? { isExact: true, lines: [] } : await verifyScene({ root }, env);
  const isSame = changes.length === 0 && parity.isExact;
  const verdict = isSame ? "Every process is the very one that ran before." : "Something was disturbed.";
  return { kind: isSame ? "same" : "changed", lines: [...said, ...changes, ...parity.lines, verdict] };
}

function differences(before: Note, now: Note): readonly string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].flatMap((name) => {
    if (before[name] === now[name]) return [];
    if (now[name] === undefined) return [`${name}: ran before, and does not now`];
    return [before[name] === undefined ? `${name}: did not run before` : `${name}: another process than before`];
  });
}

async function noteOf(root: string, { models }: SceneStatus): Promise<Note> {
  const boot = bootId();
  const gateway = await gatewayIdentity(root);
  const entries = models.flatMap(({ name, pid, startTicks }) =>
    pid === null ? [] : [[`model ${name}`, `${boot}/${pid}/${startTicks ?? ""}`] as const],
  );
  return Object.fromEntries([
    ...entries,
    ...(gateway === undefined ? [] : [["gateway", `${gateway.bootId}/${gateway.pid}/${gateway.startTicks}`] as const]),
  ]);
}

function readNote(file: string): Note | undefined {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8")) as Note;
  } catch {
    // None, or one that is damaged: it is made anew.
    return undefined;
  }
}

function writeNote(root: string, file: string, note: Note): void {
  try {
    makeDirectory(stateDirectory(root), 0o700);
    fs.writeFileSync(`${file}.new`, JSON.stringify(note), { mode: 0o600 });
    fs.renameSync(`${file}.new`, file);
  } catch (error) {
    throw fileFailure(file, error);
  }
}

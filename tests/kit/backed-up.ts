// SPDX-License-Identifier: Apache-2.0
// A world with a job that ran and one that waits, a backup of it, and how a refusal of the real command must look.

import assert from "node:assert/strict";
import path from "node:path";
import type { TestContext } from "node:test";
import type { BackupSummary } from "../../src/cli/programs.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { createHome, type Home } from "./command.ts";
import { createWorld } from "./world.ts";

export type Case = {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Record<string, string>;
  readonly code: number;
  readonly message: RegExp;
};

export async function assertRefused(home: Home, { name, args, env = {}, code, message }: Case): Promise<void> {
  const finished = await home.run(args, env);
  assert.equal(finished.code, code, `${name}: ${finished.stdout}${finished.stderr}`);
  assert.match(finished.stderr, /^holdfast: \S/, name);
  assert.match(finished.stderr, message, name);
  assert.doesNotMatch(finished.stderr, /\n\s+at |bug in Holdfast|undefined/, name);
}

export const urlOf = ({ host, user, database }: ConnectionOptions, as = user): string =>
  `postgres://${as}@/${database}?host=${encodeURIComponent(String(host))}`;

/** A world with one job that ran, and a backup of it by the real command. */
export async function backedUp(t: TestContext) {
  const world = await createWorld(t);
  const node = await world.node("one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(id, lease.epoch);
  await node.log(id, lease.epoch, { offset: 0, text: "some words\n" });
  await node.end(id, lease.epoch);
  await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await world.stopController();
  const home = createHome(t);
  const directory = path.join(home.directory, "backup");
  const env = { DATABASE_URL: urlOf(world.database.controller), DATABASE_OWNER_URL: urlOf(world.database.owner) };
  const { code, stdout, stderr } = await home.run(["backup", directory, "--json"], env);
  assert.equal(code, 0, stderr);
  return { world, home, directory, env, summary: JSON.parse(stdout) as BackupSummary };
}

// SPDX-License-Identifier: Apache-2.0
// holdfast node pair: what a person sees: the code alone on standard output, the command, each phase as the machine reports it.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { createHome as createAccount } from "../kit/command.ts";
import { NodeDouble } from "../kit/node-double.ts";
import { until } from "../kit/until.ts";
import { createHome } from "./home.ts";
import { createFleet } from "./kit.ts";

/** A start beside other tests on two processors. */
const SLOW = { withinMs: 60_000 };

test("node pair --watch: the code alone on standard output, then each phase of that machine, until it is online; then the name is taken", async (t) => {
  const fleet = await createFleet(t, { isPlain: true });
  const [account, machine] = [createAccount(t), createHome(t)];
  const env = { HOLDFAST_URL: fleet.url, HOLDFAST_TOKEN: fleet.token };
  const watching = account.start(["node", "pair", "anna", "--watch"], env);
  await until("the command is shown", () => watching.stderr().includes("To read it first"), SLOW);
  const code = watching.stdout();
  assert.match(code, /^hfp_\S{43}\n$/);
  const command = /^ {2}(curl .* \| sh -s -- .*)$/m.exec(watching.stderr())?.[1] ?? "";
  assert.equal(command, `curl -fsS ${fleet.url}/v1/bootstrap.sh | sh -s -- --controller ${fleet.url}`);
  assert.ok(!watching.stderr().includes(code.trim()), "the code is in no command");
  const ran = await machine.command(command, { HOLDFAST_PAIRING_CODE: code.trim() });
  assert.equal(ran.code, 0, ran.all);
  const read = (file: string): string => fs.readFileSync(path.join(machine.root, "node", file), "utf8").trim();
  const { nodeId } = JSON.parse(read("agent.json")) as { nodeId: string };
  await new NodeDouble({ baseUrl: fleet.url, nodeId, credential: read("credential") }).hello();
  assert.equal(await watching.ended, 0);
  const phases = watching
    .stderr()
    .split("\n")
    .filter((line) => /^[✓✗] /.test(line));
  assert.deepEqual(
    phases.map((line) => line.split(/[: ]/)[1]),
    ["look", "plan", "fetch", "install", "pair", "start"],
  );
  assert.match(
    watching.stderr(),
    /✓ pair: paired as anna \(node_\w+\) with default[\s\S]*anna is online, version 0\.1\.0\n$/,
  );
  const again = await account.run(["node", "pair", "anna"], env);
  assert.equal(again.code, 76);
  assert.match(again.stderr, /a node named anna exists \(last seen 20.*holdfast node pair anna --take-over/);
  const over = await account.run(["node", "pair", "anna", "--take-over"], env);
  assert.equal(over.code, 0, over.stderr);
});

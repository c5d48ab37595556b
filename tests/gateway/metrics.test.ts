// SPDX-License-Identifier: Apache-2.0
// The counters of a gateway by the command line: printed, or in a file that is replaced whole.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { createHome } from "../kit/command.ts";
import { until } from "../kit/until.ts";
import { freePort, get, startGateway, startStub } from "./kit.ts";

test("gateway metrics prints what the gateway counted, or replaces a file with it, and says when none runs", async (t) => {
  const stub = await startStub(t, "model");
  const { control, path: socket } = await startGateway(t);
  const listen = { host: "127.0.0.1", port: await freePort() };
  await control.set({ fronts: [{ listen, target: { kind: "serving", upstream: stub.upstream } }] }, 1);
  await until("it serves", async () => (await control.status()).fronts[0]?.proof?.kind === "proved");
  await get(listen, "/who");
  const home = createHome(t);
  const printed = await home.run(["gateway", "metrics", "--control", socket]);
  assert.equal(printed.code, 0, printed.stderr);
  const line = `holdfast_gateway_connections_total{listen="127.0.0.1:${listen.port}"} 1`;
  assert.ok(printed.stdout.includes(`\n${line}\n`), printed.stdout);
  const file = path.join(path.dirname(socket), "gateway.prom");
  fs.writeFileSync(file, "old");
  const written = await home.run(["gateway", "metrics", "--control", socket, "--file", file]);
  assert.deepEqual([written.code, written.stdout], [0, ""]);
  assert.ok(fs.readFileSync(file, "utf8").includes(line));
  assert.deepEqual(
    fs.readdirSync(path.dirname(file)).filter((name) => name.endsWith(".new")),
    [],
  );
  const none = await home.run(["gateway", "metrics", "--control", `${socket}.none`, "--file", file]);
  assert.notEqual(none.code, 0);
  assert.match(none.stderr, /^holdfast: the gateway at .* does not answer/);
  assert.ok(fs.readFileSync(file, "utf8").includes(line));
});

// SPDX-License-Identifier: Apache-2.0
// Two versions that do not understand each other: the older side is told that it is the older one, and nothing is written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { VERSION_HEADER } from "../../src/protocol/version.ts";
import { createWorld } from "../kit/world.ts";

test("P13: a request that is not understood is answered by which side to update; of the same version it is a mistake", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("anna");
  const hello = async (version: string | undefined, more: Record<string, unknown>) => {
    const body = { facts: node.facts, now: new Date().toISOString(), holds: [], ...more };
    const response = await fetch(`${world.url}/v1/node/hello`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${node.credential}`,
        ...(version === undefined ? {} : { [VERSION_HEADER]: version }),
      },
      body: JSON.stringify(body),
    });
    const { code, message } = (await response.json()) as { code?: string; message?: string };
    return [response.status, code, message] as const;
  };
  const before = await world.sql("select session_id from app.node");
  const unknown = { fromTheFuture: true };
  assert.deepEqual((await hello("0.0.9", unknown)).slice(0, 2), [409, "agent_too_old"]);
  assert.deepEqual((await hello("99.0.0", unknown)).slice(0, 2), [409, "controller_too_old"]);
  assert.match((await hello("99.0.0", unknown))[2] ?? "", /this controller is 0\.1\.0 .* agent of 99\.0\.0/);
  for (const version of ["0.1.0", undefined, "no version"])
    assert.deepEqual((await hello(version, unknown)).slice(0, 2), [400, "invalid_request"], String(version));
  assert.deepEqual(await world.sql("select session_id from app.node"), before);
  assert.equal((await hello("0.0.9", {}))[0], 200, "what is understood is answered, whatever the version");
});

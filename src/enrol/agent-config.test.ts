// SPDX-License-Identifier: Apache-2.0
// Claims about agent.json: nothing secret, nothing unknown, all faults at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Failure } from "../std/errors.ts";
import { parseAgentConfig } from "./agent-config.ts";

const good = { controllerUrl: "http://127.0.0.1:7440", nodeId: "node_x", name: "spark" };

function failureOf(value: unknown): Failure {
  try {
    parseAgentConfig(typeof value === "string" ? value : JSON.stringify(value), "/r/node/agent.json");
  } catch (error) {
    if (error instanceof Failure) return error;
  }
  throw new Error("no Failure was thrown");
}

test("reads what pairing wrote", () => {
  assert.deepEqual(parseAgentConfig(JSON.stringify(good), "f"), good);
});

test("refuses a field that looks like a credential or key, whatever it is called", () => {
  for (const key of ["credential", "nodeKey", "key", "apiKey", "node_key", "token", "password"]) {
    assert.equal(failureOf({ ...good, [key]: "x" }).code, "secret_in_config", key);
  }
});

test("refuses a credential in a field of another name, and does not repeat it", () => {
  const secret = `hfn_${"a".repeat(43)}`;
  const failure = failureOf({ ...good, name: secret });
  assert.equal(failure.code, "secret_in_config");
  assert.ok(!JSON.stringify([failure.message, failure.details]).includes(secret));
});

test("tells all faults at once", () => {
  const failure = failureOf({ controllerUrl: "ftp://x", name: 7, colour: "red" });
  assert.equal(failure.code, "config_invalid");
  assert.deepEqual(
    failure.details.map((fault) => fault.place.split(": ")[1]),
    ["colour", "nodeId", "name", "controllerUrl"],
  );
});

test("says that a file is not JSON or not an object", () => {
  assert.match(failureOf("{").message, /not JSON/);
  assert.match(failureOf([]).message, /not a JSON object/);
});

// SPDX-License-Identifier: Apache-2.0
// Every state of a device but ok has something to do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { deviceAdvice } from "./device-advice.ts";
import { deviceStates } from "./node.ts";

test("a person is told what to do about each state of a device, and nothing about one that is ok", () => {
  for (const state of deviceStates) assert.equal(deviceAdvice({ state }) === "", state === "ok", state);
});

// SPDX-License-Identifier: Apache-2.0
// Claims about what a unit asks for and what the agent got.

import assert from "node:assert/strict";
import { test } from "node:test";
import { compareSandbox, measureSandbox } from "./sandbox.ts";

const got = { pid: 7, jobAccount: null, noNewPrivileges: true, systemCallFilter: true, protectSystem: false };

test("D42: what was asked for and not got is named; what nobody asked for is no fault", () => {
  const asked = { NoNewPrivileges: "yes", SystemCallFilter: "read write", ProtectSystem: "strict" };
  assert.deepEqual(
    compareSandbox(asked, got).map(({ text, isMissing }) => `${isMissing ? "! " : ""}${text}`),
    [
      "NoNewPrivileges: asked yes, got it",
      "SystemCallFilter: asked yes, got it",
      "! ProtectSystem: asked strict, got nothing",
    ],
  );
  const none = compareSandbox({ NoNewPrivileges: "no", ProtectSystem: "no" }, { ...got, noNewPrivileges: false });
  assert.ok(none.every(({ isMissing }) => !isMissing));
});

test("D42: the agent measures: a file system is read-only only when a write says so, not when rights are missing", () => {
  assert.equal(measureSandbox(null, "/tmp").protectSystem, false);
  assert.equal(measureSandbox(null, "/nonexistent").protectSystem, false);
  assert.equal(measureSandbox(null, "/sys/kernel").protectSystem, false);
});

// SPDX-License-Identifier: Apache-2.0
// Claims about releases: on trial once, back after a failure, never the same failure twice, and a damaged file means installed.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import {
  atStart,
  installedOnly,
  proved,
  readRelease,
  releasesDirectory,
  removeOtherReleases,
  returned,
  withNew,
  writeRelease,
} from "./release.ts";

const [a, b] = ["a".repeat(64), "b".repeat(64)];

test("a new release is started once on trial; a second start without an answered heartbeat is its end", () => {
  const taken = withNew(installedOnly, a) ?? assert.fail("it is new");
  const first = atStart(taken);
  assert.deepEqual([first.current, first.trial], [a, { starts: 1 }]);
  const second = atStart(first);
  assert.deepEqual(second, { current: null, previous: null, trial: null, failed: [a] });
  assert.equal(atStart(second), second);
  assert.equal(withNew(second, a), undefined, "what failed is never tried again");
});

test("a release that was online stays, and is what a later failure returns to", () => {
  const good = proved(atStart(withNew(installedOnly, a) ?? assert.fail("it is new")));
  assert.equal(atStart(good), good);
  assert.equal(withNew(good, a), undefined, "what runs is not new");
  const next = atStart(withNew(good, b) ?? assert.fail("it is new"));
  assert.deepEqual(returned(next), { current: a, previous: null, trial: null, failed: [b] });
});

test("what was written is read, a damaged file means the installed release, and others' directories go", (context) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-release-"));
  context.after(() => fs.rmSync(root, { recursive: true, force: true }));
  assert.deepEqual(readRelease(root), { state: installedOnly });
  for (const name of [a, b, "draft"]) fs.mkdirSync(path.join(releasesDirectory(root), name), { recursive: true });
  const state = withNew(installedOnly, a) ?? assert.fail("it is new");
  writeRelease(root, state);
  assert.deepEqual(readRelease(root), { state });
  removeOtherReleases(root, state);
  assert.deepEqual(fs.readdirSync(releasesDirectory(root)), [a]);
  for (const text of ["", "{", "null", "[]", `{"current":"../x","previous":null,"trial":null,"failed":[]}`]) {
    fs.writeFileSync(path.join(root, "node/release.json"), text, { mode: 0o600 });
    const read = readRelease(root);
    assert.deepEqual(read.state, installedOnly, text);
    assert.match(read.problem ?? "", /installed release runs/, text);
  }
});

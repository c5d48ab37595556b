// SPDX-License-Identifier: Apache-2.0
// Every entry gets a verdict, and interrupted is never said of what may still run.

import assert from "node:assert/strict";
import { test } from "node:test";
import { adjudicate, type Found } from "./adjudicate.ts";

test("P11: every finding has its verdict: the real ending, adopted, never started, interrupted with why, or looked at again", () => {
  const verdicts: { readonly [kind in Found["kind"]]: readonly [Found, string, RegExp?] } = {
    alive: [{ kind: "alive" }, "adopt"],
    ended: [{ kind: "ended", outcome: "exited" }, "ended"],
    "not-started": [{ kind: "not-started" }, "not-started"],
    interrupted: [{ kind: "interrupted" }, "interrupted", /nobody saw the end/],
    damaged: [{ kind: "damaged" }, "interrupted", /damaged/],
    remains: [{ kind: "remains" }, "waits"],
    missing: [{ kind: "missing" }, "interrupted", /directory is gone/],
  };
  for (const [found, kind, why] of Object.values(verdicts)) {
    const verdict = adjudicate(found);
    assert.equal(verdict.kind, kind, found.kind);
    if (verdict.kind === "interrupted") assert.match(verdict.why, why ?? /^$/);
    if (verdict.kind === "ended") assert.equal(verdict.outcome, "exited");
  }
});

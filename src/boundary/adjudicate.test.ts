// SPDX-License-Identifier: Apache-2.0
// Every entry gets a verdict, and interrupted is never said of what may still run.

import assert from "node:assert/strict";
import { test } from "node:test";
import { adjudicate, type Found } from "./adjudicate.ts";

const survivors = [{ pid: 77 }];

test("P11: every finding has its verdict: the real ending, adopted, never started, interrupted with why, or looked at again", () => {
  const verdicts: { readonly [kind in Found["kind"]]: readonly (readonly [Found, string, RegExp?])[] } = {
    alive: [[{ kind: "alive" }, "adopt"]],
    ended: [[{ kind: "ended", outcome: "exited" }, "ended"]],
    "not-started": [[{ kind: "not-started" }, "not-started"]],
    interrupted: [[{ kind: "interrupted" }, "interrupted", /nobody saw the end/]],
    damaged: [
      [{ kind: "damaged", survivors: [] }, "interrupted", /damaged/],
      [{ kind: "damaged", survivors }, "waits"],
    ],
    remains: [[{ kind: "remains" }, "waits"]],
    missing: [
      [{ kind: "missing", survivors: [] }, "interrupted", /directory is gone/],
      [{ kind: "missing", survivors }, "waits"],
    ],
  };
  for (const [found, kind, why] of Object.values(verdicts).flat()) {
    const verdict = adjudicate(found);
    assert.equal(verdict.kind, kind, found.kind);
    if (verdict.kind === "interrupted") assert.match(verdict.why, why ?? /^$/);
    if (verdict.kind === "ended") assert.equal(verdict.outcome, "exited");
  }
});

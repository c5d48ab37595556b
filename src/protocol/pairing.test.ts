// SPDX-License-Identifier: Apache-2.0
// How a pairing stands, from what its script reported and what the controller sees.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pairing } from "./enrol-schema.ts";
import { isUnderWay, outlookOf, stepsOf } from "./pairing.ts";

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 12, 0, second)).toISOString();

function pairing(change: Partial<Pairing> = {}): Pairing {
  const state = "waiting" as const;
  const unused = { usedAt: null, usedFrom: null, keyFingerprint: null, nodeId: null, takesOver: null };
  return {
    id: "pair_1",
    name: "anna",
    state,
    createdAt: at(0),
    expiresAt: at(900),
    ...unused,
    phases: [],
    ...change,
  };
}

type Report = readonly [Pairing["phases"][number]["phase"], Pairing["phases"][number]["outcome"], string?];

const reported = (...reports: readonly Report[]): Pairing["phases"] =>
  reports.map(([phase, outcome, detail = ""], index) => ({ phase, outcome, detail, at: at(index + 1) }));

const seen = (second: number | null, change: { online?: boolean; status?: "active" | "retired" } = {}) => ({
  online: true,
  status: "active" as const,
  lastHeartbeatAt: second === null ? null : at(second),
  ...change,
});

const used = { state: "paired", usedAt: at(10), nodeId: "node_1" } as const;

test("every step is there from the start, in order; what is rarely reported only when it was", () => {
  const states = (phases: Pairing["phases"]) => stepsOf(phases).map(({ phase, state }) => `${phase} ${state}`);
  assert.deepEqual(states([]), ["fetch waiting", "install waiting", "pair waiting", "start waiting", "prove waiting"]);
  assert.deepEqual(states(reported(["look", "failed"]))[0], "look failed");
  const phases = reported(["fetch", "begun"], ["fetch", "done", "agent 0.1.0"], ["install", "begun"]);
  assert.deepEqual(states(phases).slice(0, 3), ["fetch done", "install begun", "pair waiting"]);
  assert.deepEqual(stepsOf(phases)[0], {
    phase: "fetch",
    state: "done",
    detail: "agent 0.1.0",
    beganAt: at(1),
    endedAt: at(2),
  });
});

test("a run that begins anew forgets what the one before had reported", () => {
  const phases = reported(["fetch", "begun"], ["fetch", "done"], ["install", "begun"], ["install", "failed", "full"]);
  const again = [...phases, ...reported(["fetch", "begun"])];
  assert.deepEqual(
    stepsOf(again).map(({ state }) => state),
    ["begun", "waiting", "waiting", "waiting", "waiting"],
  );
});

test("online is the controller's word: only a heartbeat after the code was used counts, whatever the script says", () => {
  const paired = pairing({ ...used, phases: reported(["prove", "begun"], ["prove", "done"]) });
  assert.equal(outlookOf(paired, seen(11)).kind, "online");
  assert.equal(outlookOf(paired, seen(9)).kind, "idle", "the machine before it");
  assert.equal(outlookOf(paired, seen(11, { online: false })).kind, "offline", "it was");
  assert.equal(outlookOf(paired, seen(null)).kind, "idle");
  assert.equal(outlookOf(pairing(), undefined).kind, "waiting");
  assert.equal(outlookOf(pairing({ phases: reported(["fetch", "begun"]) }), undefined).kind, "going");
  assert.equal(outlookOf(pairing({ ...used }), seen(null)).kind, "going", "without a script nothing is reported");
  assert.equal(outlookOf(pairing({ state: "expired" }), undefined).kind, "expired");
});

test("a failure says what to do, by what the code is still good for", () => {
  const failed = (state: Partial<Pairing>, text: string) => {
    const phases = [{ phase: "start", outcome: "failed", detail: text, at: at(20) }] as const;
    const outlook = outlookOf(pairing({ ...state, phases: [...phases] }), seen(15));
    assert.ok(outlook.kind === "failed");
    return outlook;
  };
  const waiting = failed({}, "the disk is full");
  assert.match(waiting.advice, /run the command again: the code is still good/);
  assert.equal(waiting.needsCode, false);
  assert.equal(failed(used, "it is down").needsCode, true);
  assert.match(failed(used, "it is down").advice, /the code is used: mend that, then take anna over/);
  assert.match(failed({ state: "expired" }, "x").advice, /has expired: mend that, then make a new one/);
  assert.match(
    failed({}, "clock_off: not yet valid").advice,
    /^Set the clock, or turn NTP on: \S+ \S+ \S+\. What it did/,
  );
  assert.match(failed({}, "no_such_code: x").advice, /^What it did/);
});

test("it is worth a look until its machine was online, its code has ended, or its node is retired", () => {
  const now = Date.parse(at(100));
  assert.equal(isUnderWay(pairing(), undefined, now), true);
  assert.equal(isUnderWay(pairing(), undefined, Date.parse(at(900))), false);
  assert.equal(isUnderWay(pairing({ state: "expired" }), undefined, now), false);
  assert.equal(isUnderWay(pairing({ ...used }), seen(null), now), true);
  assert.equal(isUnderWay(pairing({ ...used }), seen(11), now), false);
  assert.equal(isUnderWay(pairing({ ...used }), seen(11, { online: false }), now), false, "it was online");
  const failed = pairing({ ...used, phases: [{ phase: "start", outcome: "failed", detail: "", at: at(20) }] });
  assert.equal(isUnderWay(failed, seen(15, { online: false }), now), true);
  assert.equal(isUnderWay(failed, seen(21), now), false, "started by hand");
  assert.equal(isUnderWay(pairing({ ...used }), seen(null, { status: "retired", online: false }), now), false);
});

// SPDX-License-Identifier: Apache-2.0
// What an app sees of a switch through the gateway: whole answers of exactly the scene that is active, a drain with a limit,
// no hidden limits, and a client that leaves is known to the model at once.

import assert from "node:assert/strict";
import http from "node:http";
import { test, type TestContext } from "node:test";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";
import { freePorts, statsOf } from "./cases-kit.ts";
import { createSceneMachine, type SceneMachine, stub } from "./kit.ts";

type Stream = {
  readonly text: () => string;
  /** "whole", or how it was cut. */
  readonly done: Promise<string>;
  readonly leave: () => void;
};

function stream(t: TestContext, { gateway }: SceneMachine, answer: object): Stream {
  let text = "";
  const request = http.request(`http://${gateway}/v1/completions`, { method: "POST", agent: false });
  const done = new Promise<string>((resolve) => {
    request.once("error", (error) => resolve(error.message));
    request.once("response", (response) => {
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.once("end", () => resolve(text.includes("[DONE]") ? "whole" : "cut"));
      response.once("error", (error) => resolve(error.message));
    });
  });
  request.end(JSON.stringify({ stream: true, stub: answer }));
  cleanupOf(t).defer(() => void request.destroy());
  return { text: () => text, done, leave: () => void request.destroy() };
}

type Pair = { readonly machine: SceneMachine; readonly one: number; readonly two: number };

/** Both scenes are one model on a port of its own behind the same gateway. */
function write({ machine, one, two }: Pair, drain: string): void {
  machine.write({
    gateways: { main: { listen: machine.gateway, http_status: true, drain } },
    models: { ...stub("one", { port: one }), ...stub("two", { port: two }) },
    scenes: { one: { models: ["one"] }, two: { models: ["two"] } },
  });
}

test("apps go through a switch", async (t) => {
  const machine = await createSceneMachine(t);
  const [one = 0, two = 0] = await freePorts(2);
  const pair = { machine, one, two };
  write(pair, "20s");
  await machine.ok("scene", "activate", "one");
  await machine.agent();
  await t.test("case 49: a silence before the first token is not cut", (own) => case49(own, pair));
  await t.test("case 25: the model knows at once of a client that left in a pause between tokens", (own) =>
    case25(own, pair),
  );
  await t.test("case 28: 200 connections at once are all served", (own) => case28(own, pair));
  await t.test("case 18: a stream that runs when the switch is asked for completes within the drain", (own) =>
    case18(own, pair),
  );
  await t.test("case 17: an endless stream ends with the drain, and so does the switch", (own) => case17(own, pair));
  await t.test("case 16: of requests all through a switch each ends, and none reaches the former model after it", () =>
    case16(pair),
  );
});

async function case49(t: TestContext, { machine }: Pair): Promise<void> {
  const silent = stream(t, machine, { events: 2, silenceMs: 2_000 });
  assert.equal(await silent.done, "whole");
}

async function case25(t: TestContext, { machine, one }: Pair): Promise<void> {
  const before = (await statsOf(one))?.cancelled ?? 0;
  const leaving = stream(t, machine, { events: 3, gapMs: 10_000 });
  await until("the first token came", () => leaving.text().includes("data: "));
  leaving.leave();
  await until("the model counts it", async () => (await statsOf(one))?.cancelled === before + 1, { withinMs: 5_000 });
}

async function case28(t: TestContext, { machine }: Pair): Promise<void> {
  const all = Array.from({ length: 200 }, () => stream(t, machine, { events: 2, gapMs: 500 }));
  assert.deepEqual(new Set(await Promise.all(all.map(({ done }) => done))), new Set(["whole"]));
}

async function case18(t: TestContext, pair: Pair): Promise<void> {
  const { machine } = pair;
  const running = stream(t, machine, { events: 40, gapMs: 50 });
  await until("it runs", () => running.text().includes("data: "));
  await machine.ok("scene", "activate", "two");
  assert.equal(await running.done, "whole");
  assert.equal(await machine.ask(), "two");
}

async function case17(t: TestContext, pair: Pair): Promise<void> {
  const { machine } = pair;
  write(pair, "500ms");
  const endless = stream(t, machine, { events: 1_000_000, gapMs: 20 });
  await until("it runs", () => endless.text().includes("data: "));
  await machine.ok("scene", "activate", "one");
  assert.notEqual(await endless.done, "whole");
  assert.equal(await machine.ask(), "one");
}

async function case16(pair: Pair): Promise<void> {
  const { machine } = pair;
  write(pair, "5s");
  const answers: string[] = [];
  const over = new AbortController();
  const loops = Array.from({ length: 8 }, async () => {
    while (!over.signal.aborted) answers.push(await machine.ask());
  });
  await until("they are under way", () => answers.length > 20);
  await machine.ok("scene", "activate", "two");
  const at = answers.length;
  await until("each has asked again", () => answers.length > at + 32);
  over.abort();
  await Promise.all(loops);
  assert.deepEqual(new Set(answers), new Set(["one", "two"]));
  // Those that were asked before its end may be told after it.
  assert.deepEqual(new Set(answers.slice(at + 8)), new Set(["two"]));
}

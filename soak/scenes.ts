// SPDX-License-Identifier: Apache-2.0
// Switches under load with sudden deaths: clients ask without a pause through the gateway while scenes are switched, agents are
// killed in the middle and models die. Rule: only a request that was on its way to a model that was killed may fail.

import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import type { SceneStatus } from "../src/scenes/operations.ts";
import { allPids, isAlive, identityOf } from "../src/std/process.ts";
import { freePort } from "../tests/kit/stub-model.ts";
import { until } from "../tests/kit/until.ts";
import { type Agent, createSceneMachine, type SceneMachine, stub } from "../tests/scenes/kit.ts";
import { askAgent } from "../src/scenes/socket.ts";

export type SoakResult = {
  readonly switches: number;
  readonly agentsKilled: number;
  readonly modelsKilled: number;
  readonly requests: number;
  /** Requests that failed while no model was killed. */
  readonly failed: number;
  readonly wrongAnswers: number;
  readonly orphans: number;
  readonly strangersKilled: number;
  readonly gatewayMemoryMiB: readonly [number, number];
  readonly gatewayDescriptors: readonly [number, number];
  readonly seconds: number;
};

const CLIENTS = 8;
const STRANGERS = 5;

export async function soakScenes(switches: number, seed: number): Promise<SoakResult> {
  const began = performance.now();
  await using stack = new AsyncDisposableStack();
  const machine = await createSceneMachine({
    after: (work) =>
      stack.defer(async () => {
        await (work as () => unknown)();
      }),
  });
  const [a, b] = [await freePort(), await freePort()];
  machine.write({
    models: { ...stub("red", { port: a }), ...stub("blue", { port: b }), ...stub("green", { port: a }) },
    scenes: Object.fromEntries(
      ["red", "blue", "green"].map((name) => [name, { models: [name], gateways: { main: name } }]),
    ),
  });
  let agent = await machine.agent();
  await activate(machine, "red");
  const strangers = Array.from({ length: STRANGERS }, () => spawn("sleep", ["86400"], { stdio: "ignore" }));
  stack.defer(() => strangers.forEach((stranger) => void stranger.kill("SIGKILL")));
  const gateway = await gatewayOf(machine);
  const before = usageOf(gateway);
  const load = new Load(machine.gateway);
  const chance = mulberry(seed);
  let agentsKilled = 0;
  let modelsKilled = 0;
  for (let number = 0; number < switches; number++) {
    const target = ["red", "blue", "green"][(number + 1) % 3] ?? "red";
    const drawn = chance();
    if (drawn < 0.2) {
      const switching = activate(machine, target).catch(() => undefined);
      agent = await killedAndNext(machine, agent, chance() * 200);
      await switching;
      agentsKilled++;
    } else if (drawn < 0.3) {
      const [model] = (await machine.status()).models;
      await load.excused(async () => {
        if (model?.pid !== null && model !== undefined) process.kill(model.pid, "SIGKILL");
        await whole(machine);
      });
      modelsKilled++;
    }
    await whole(machine);
    await activate(machine, target);
  }
  await load.stop();
  const after = usageOf(gateway);
  await machine.ok("scene", "stop", "--gateway");
  agent.process.kill("SIGTERM");
  await agent.ended;
  return {
    switches,
    agentsKilled,
    modelsKilled,
    requests: load.requests,
    failed: load.failed,
    wrongAnswers: load.wrong,
    orphans: orphansOf(machine.root).length,
    strangersKilled: strangers.filter(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null).length,
    gatewayMemoryMiB: [before.memoryMiB, after.memoryMiB],
    gatewayDescriptors: [before.descriptors, after.descriptors],
    seconds: Math.round((performance.now() - began) / 1000),
  };
}

async function activate(machine: SceneMachine, scene: string): Promise<void> {
  const answer = await askAgent(machine.root, { op: "activate", scene }, () => {}, new AbortController().signal);
  if (answer === undefined) throw new Error("no agent answers");
}

async function killedAndNext(machine: SceneMachine, agent: Agent, afterMs: number): Promise<Agent> {
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  agent.process.kill("SIGKILL");
  await agent.ended;
  return machine.agent();
}

function whole(machine: SceneMachine): Promise<SceneStatus> {
  return until(
    "the scene is whole",
    async () => {
      const seen = await machine.status();
      const isWhole = seen.busy === null && seen.transition === null && seen.active !== null;
      return isWhole && seen.models.every(({ condition }) => condition === "healthy") && seen.models.length === 1
        ? seen
        : undefined;
    },
    { withinMs: 60_000 },
  );
}

async function gatewayOf(machine: SceneMachine): Promise<number> {
  const launches = path.join(machine.root, "node", "launches");
  const name = fs.readdirSync(launches).find((each) => each.includes("_gateway")) ?? "";
  const { pid } = JSON.parse(fs.readFileSync(path.join(launches, name, "identity"), "utf8")) as { pid: number };
  const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  return Promise.resolve(children[0] ?? pid);
}

function usageOf(pid: number): { readonly memoryMiB: number; readonly descriptors: number } {
  const status = fs.readFileSync(`/proc/${pid}/status`, "utf8");
  const memoryMiB = Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024);
  return { memoryMiB, descriptors: fs.readdirSync(`/proc/${pid}/fd`).length };
}

/** Processes that bear the mark of a launch of this root. */
function orphansOf(root: string): readonly number[] {
  return allPids().filter((pid) => {
    const identity = identityOf(pid);
    try {
      const isOurs = fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(`${root}/node/launches`);
      return isOurs && identity !== undefined && isAlive(identity);
    } catch {
      return false;
    }
  });
}

/** Half of the clients keep their connections, half make a new one for each request. */
class Load {
  requests = 0;
  failed = 0;
  wrong = 0;
  #isExcused = false;
  #isOver = false;
  readonly #agents: readonly http.Agent[];
  readonly #clients: readonly Promise<void>[];

  constructor(address: string) {
    this.#agents = Array.from({ length: CLIENTS / 2 }, () => new http.Agent({ keepAlive: true, maxSockets: 1 }));
    this.#clients = Array.from({ length: CLIENTS }, (_, index) => this.#loop(address, this.#agents[index]));
  }

  async excused(work: () => Promise<void>): Promise<void> {
    this.#isExcused = true;
    await work();
    this.#isExcused = false;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    for (const agent of this.#agents) agent.destroy();
  }

  async #loop(address: string, agent: http.Agent | undefined): Promise<void> {
    while (!this.#isOver) {
      const isExcused = this.#isExcused;
      const answer = await request(address, agent);
      this.requests++;
      if (answer === "failed" && !isExcused && !this.#isExcused) this.failed++;
      if (answer === "wrong") this.wrong++;
    }
  }
}

/** As every HTTP client does, a request that got no byte of an answer on a used connection is sent again. */
function request(address: string, agent: http.Agent | undefined): Promise<"right" | "wrong" | "failed"> {
  return new Promise((resolve) => {
    const asked = http.get(`http://${address}/v1/models`, { agent: agent ?? false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", () => resolve("failed"));
      response.on("end", () => {
        if (response.statusCode !== 200) resolve("failed");
        else resolve(/"id":\s*"(red|blue|green)"/.test(text) ? "right" : "wrong");
      });
    });
    asked.on("error", () => {
      if (asked.reusedSocket) void request(address, agent).then(resolve);
      else resolve("failed");
    });
  });
}

function mulberry(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

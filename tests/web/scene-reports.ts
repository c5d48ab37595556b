// SPDX-License-Identifier: Apache-2.0
// What a node tells of its scenes, by hand: for what the page shows of states that a real agent reaches with effort only.

import type { SceneReport } from "../../src/protocol/scene-schema.ts";
import type { NodeDouble } from "../kit/node-double.ts";

const GIB = 2 ** 30;
const NAME_MAX = 40;

const nightScenes: SceneReport = {
  active: "day",
  desired: "day",
  transition: null,
  lastError: null,
  busy: null,
  doubt: null,
  scenes: [
    { name: "day", models: ["qwen3-32b"] },
    { name: "night", models: ["qwen3-32b", "whisper"] },
  ],
  models: [
    {
      name: "qwen3-32b",
      condition: "healthy",
      why: "",
      marker: '"qwen3-32b"',
      pid: 4711,
      startTicks: "123456",
      port: 8081,
      anonymousBytes: 3 * GIB,
      swappedBytes: 0,
    },
  ],
  gateways: [],
  progress: [],
  availableBytes: 20 * GIB,
  floorBytes: 4 * GIB,
  wish: null,
};

const long = (name: string): string => `${name}-`.padEnd(NAME_MAX, "0123456789");
const models = ["first", "second", "third"].map(long);

/** Everything as long as it may be, in the middle of a switch. */
export const longScenes: SceneReport = {
  ...nightScenes,
  active: long("day"),
  desired: long("night"),
  transition: long("night"),
  busy: `a switch to ${long("night")}`,
  lastError: `${"x".repeat(300)} ${"it ended ".repeat(40)}`,
  scenes: [
    { name: long("day"), models },
    { name: long("night"), models: models.slice(1) },
  ],
  models: models.map((name, index) => ({
    name,
    condition: index === 0 ? "healthy" : "unhealthy",
    why: index === 0 ? "" : `marker: ${"y".repeat(200)}`,
    marker: JSON.stringify(long(name)),
    pid: 4_194_304,
    startTicks: "9007199254740993",
    port: 65_535,
    anonymousBytes: 111 * GIB,
    swappedBytes: 222 * GIB,
  })),
  gateways: [
    {
      name: long("gateway"),
      listen: `/run/${"z".repeat(200)}`,
      shows: "holding",
      model: null,
      why: `switching to ${long("night")}`,
      traffic: { open: 1000, total: 1_000_000, held: 1000, refused: 1000, bytesIn: 999 * GIB, bytesOut: 999 * GIB },
    },
  ],
  progress: models.map((model) => ({ model, phase: "loading", text: `health: ${"w".repeat(200)}`, ms: 123_456 })),
};

/** With a heartbeat. */
export function tellScenes(node: NodeDouble, told: Partial<SceneReport>) {
  const { client, sessionId, facts } = node;
  const scenes: SceneReport = { ...nightScenes, ...told };
  return client.call("nodeHeartbeat", { body: { sessionId, facts, scenes, now: new Date().toISOString() } });
}

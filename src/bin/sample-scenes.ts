// SPDX-License-Identifier: Apache-2.0
// The second half of `holdfast up`: two tiny real models behind one gateway address, one switch, and the answer of each. Rule:
// a scenes.yaml that a person wrote is left alone; what this started ends with `up`.

import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { loadBindings } from "../sample/engine.ts";
import { writeSampleModel } from "../sample/gguf.ts";
import { FILE_NAME } from "../scenes/registry.ts";
import { askAgent } from "../scenes/socket.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import type { Steps } from "./steps.ts";

export type ShowScenes = {
  readonly root: string;
  readonly steps: Steps;
  readonly signal: AbortSignal;
  readonly stack: AsyncDisposableStack;
};

const HEADER = "# Sample scenes of holdfast up. Replace this file with your own: holdfast scene init";
const NAMES = ["red", "blue"] as const;
const GATEWAY_PORT = 8011;

/** Says why not, and goes on, where it cannot be done. */
export async function showScenes({ root, steps, signal, stack }: ShowScenes): Promise<void> {
  if (signal.aborted) return;
  const file = path.join(root, FILE_NAME);
  if (fs.existsSync(file) && !fs.readFileSync(file, "utf8").startsWith(HEADER))
    return steps.line(`Scenes: ${file} is yours and was not touched; holdfast scene status shows it.`);
  try {
    loadBindings();
  } catch (error) {
    if (codeOf(error) !== "engine_missing") throw error;
    return steps.line(`Scenes were not shown: ${messageOf(error)}`);
  }
  try {
    await switchOnce(file, { root, steps, signal, stack });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    steps.line(`Scenes were not shown: ${messageOf(error)}`);
  }
}

async function switchOnce(file: string, { root, steps, signal, stack }: ShowScenes): Promise<void> {
  const listen = await steps.run("models", () => writeSamples(root, file));
  steps.note(`two tiny GGUF files for llama.cpp in ${path.join(root, "samples")}`);
  stack.defer(async () => {
    await askAgent(root, { op: "close" }, () => {}, new AbortController().signal);
  });
  for (const name of NAMES) {
    const isSwitch = name !== NAMES[0];
    await steps.run("scene", () => activate(root, name, signal));
    steps.note(`${isSwitch ? "switched to " : ""}${name}, behind http://${listen}`);
    await chat(listen, name, steps, signal);
  }
}

async function activate(root: string, scene: string, signal: AbortSignal): Promise<void> {
  const answered = await askAgent(root, { op: "activate", scene }, () => {}, signal);
  if (answered === undefined) throw new Failure("agent_ended", "the agent does not answer about its scenes");
}

/** Returns where the gateway listens: always the same address, unless another program has it. */
async function writeSamples(root: string, file: string): Promise<string> {
  const samples = path.join(root, "samples");
  fs.mkdirSync(samples, { recursive: true, mode: 0o755 });
  const known = fs.existsSync(file) ? /listen: ["']?([\d.:]+)/.exec(fs.readFileSync(file, "utf8"))?.[1] : undefined;
  const ports: number[] = [];
  for (let index = 0; index < NAMES.length; index++) ports.push(await freePort());
  const listen = known ?? `127.0.0.1:${(await isFree(GATEWAY_PORT)) ? GATEWAY_PORT : await freePort()}`;
  const program = fileURLToPath(new URL("holdfast.js", import.meta.url));
  const models = NAMES.map((name, index) => {
    const model = path.join(samples, `${name}.gguf`);
    writeSampleModel(model, { name });
    const argv = [process.execPath, program, "sample", "serve", "--model", model, "--alias", name, "--port", "${PORT}"];
    return [name, { argv, port: ports[index], health: "/health", marker: name, memory: "512MiB" }] as const;
  });
  const content = {
    version: 1,
    gateways: { main: { listen, http_status: true } },
    models: Object.fromEntries(models),
    scenes: Object.fromEntries(NAMES.map((name) => [name, { models: [name], gateways: { main: name } }])),
  };
  fs.writeFileSync(file, `${HEADER}\n${stringify(content)}`);
  return listen;
}

/** Printed piece by piece, as an app would get it. */
async function chat(listen: string, name: string, steps: Steps, signal: AbortSignal): Promise<void> {
  const response = await fetch(`http://${listen}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: name, stream: true, messages: [{ role: "user", content: "Who are you?" }] }),
    signal,
  });
  if (!response.ok || response.body === null)
    throw new Failure(
      "scene_failed",
      `the gateway answered ${response.status}: ${(await response.text()).slice(0, 200)}`,
    );
  const line = steps.stream("Who are you? ›");
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + piece).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) line.add(pieceOf(event));
  }
  line.end();
}

type Chunk = { readonly choices?: readonly { readonly delta?: { readonly content?: string } }[] };

function pieceOf(event: string): string {
  const data = event.replace(/^data: /, "");
  if (data === "[DONE]") return "";
  return (JSON.parse(data) as Chunk).choices?.[0]?.delta?.content ?? "";
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

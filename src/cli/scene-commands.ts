// SPDX-License-Identifier: Apache-2.0
// scene init | list | check | status | verify | logs | adopt | activate | resume | stop | import: the model servers of this
// machine, switched as one. Asks the running agent, and acts by itself when none runs.

import { type Command, Option } from "commander";
import type { Operation, OperationResult, SceneStatus } from "../scenes/operations.ts";
import type { Plan } from "../scenes/plan.ts";
import { Failure } from "../std/errors.ts";
import { sizeText } from "../std/units.ts";
import { example, printing, type Tree } from "./command.ts";
import { planText } from "./scene-plan.ts";
import { SceneProgress } from "./scene-progress.ts";
import { fields, table, visible } from "./table.ts";
import { connect, printJson, type Terminal } from "./terminal.ts";
import { findNode } from "./node-commands.ts";

type Options = { readonly root?: string; readonly json?: boolean };

const root = () => new Option("--root <directory>", "the root whose scenes are meant (default: HOLDFAST_ROOT)");

export function addSceneCommands(program: Command, tree: Tree): void {
  const scene = program.command("scene").description("The model servers of this machine, switched as one");
  example(scene, "holdfast scene activate chat");
  addFileCommands(scene, tree);
  addLookCommands(scene, tree);
  addSwitchCommands(scene, tree);
}

/** What only reads or writes scenes.yaml. */
function addFileCommands(scene: Command, { terminal, programs }: Tree): void {
  const init = printing(scene.command("init"))
    .description("Write a first scenes.yaml")
    .addOption(root())
    .option("--model <file>", "a GGUF file; default: a place to fill in")
    .option("--server <program>", "the model server", "llama-server")
    .option("--listen <address>", "where apps find it", "127.0.0.1:8011")
    .action(async ({ json, ...options }: Options & { model?: string; server: string; listen: string }) => {
      const made = await programs.sceneInit(options);
      if (json === true) return printJson(terminal, made);
      terminal.stdout.write(`${made.file} is written. Look at it, then: holdfast scene check\n`);
    });
  example(init, "holdfast scene init --model ~/models/qwen3-8b.gguf");

  const list = printing(scene.command("list"))
    .description("List the scenes of scenes.yaml")
    .addOption(root())
    .action(async ({ json, ...options }: Options) => {
      const scenes = await programs.sceneList(options);
      if (json === true) return printJson(terminal, scenes);
      const rows = scenes.map(({ name, models, gateways }) => [name, models.join(", "), gateways.join(", ")]);
      terminal.stdout.write(table(["SCENE", "MODELS", "GATEWAYS"], rows));
    });
  example(list, "holdfast scene list");

  const check = printing(scene.command("check"))
    .description("Look for every fault in scenes.yaml; starts and changes nothing")
    .addOption(root())
    .action(async ({ json, ...options }: Options) => {
      const scenes = await programs.sceneList(options);
      if (json === true) return printJson(terminal, { scenes: scenes.length, faults: [] });
      terminal.stdout.write(`No fault in ${scenes.length === 1 ? "1 scene" : `${scenes.length} scenes`}.\n`);
    });
  example(check, "holdfast scene check");

  const taken = printing(scene.command("import"))
    .argument("<file>", "config.yaml of llama-swap")
    .description("Turn a configuration of llama-swap into scenes.yaml")
    .addOption(root())
    .option("--listen <address>", "where apps find it", "127.0.0.1:8011")
    .action(async (file: string, { json, ...options }: Options & { listen: string }) => {
      const made = await programs.sceneImport({ ...options, file });
      if (json === true) return printJson(terminal, made);
      for (const note of made.notes) terminal.stderr.write(`${visible(note)}\n`);
      terminal.stdout.write(`${made.file} is written. Look at it, then: holdfast scene check\n`);
    });
  example(taken, "holdfast scene import ~/llama-swap/config.yaml");
}

function addLookCommands(scene: Command, { terminal, programs, setExitCode }: Tree): void {
  const never = new AbortController().signal;
  const ask = async (options: Options, operation: Operation): Promise<OperationResult> =>
    programs.scene({ ...options, operation, emit: () => {}, signal: never });

  const status = printing(scene.command("status"))
    .description("Show what is wished for, what runs and what is proved")
    .addOption(root())
    .action(async ({ json, ...options }: Options) => {
      const seen = (await ask(options, { op: "status" })) as SceneStatus;
      if (json === true) return printJson(terminal, seen);
      terminal.stdout.write(statusText(seen));
    });
  example(status, "holdfast scene status", "holdfast scene status --json");

  const verify = printing(scene.command("verify"))
    .description("Ask every model and gateway who it is, as before pointing an app at them; exit 1 unless all is exact")
    .addOption(root())
    .action(async ({ json, ...options }: Options) => {
      const found = await programs.sceneVerify(options);
      if (!found.isExact) setExitCode(1);
      if (json === true) return printJson(terminal, found);
      terminal.stdout.write(found.lines.map((line) => `${visible(line)}\n`).join(""));
    });
  example(verify, "holdfast scene verify");

  const logs = scene
    .command("logs")
    .argument("<model>", "as scene status shows it")
    .description("Print what a model wrote last")
    .addOption(root())
    .option("--bytes <number>", "at most", (text) => numberOf(text), 16_384)
    .action(async (model: string, options: Options & { bytes: number }) => {
      const { stdout, stderr } = await programs.sceneLogs({ ...options, model });
      terminal.stdout.write(stdout);
      terminal.stderr.write(stderr);
    });
  example(logs, "holdfast scene logs qwen");
}

function numberOf(text: string): number {
  if (!/^\d{1,8}$/.test(text)) throw new Failure("usage", `--bytes takes a number, not ${text}`);
  return Number(text);
}

function addSwitchCommands(scene: Command, { terminal, programs }: Tree): void {
  const run = async (options: Options, operation: Operation): Promise<OperationResult> => {
    const stop = new AbortController();
    using _ = terminal.onInterrupt(() => stop.abort());
    using progress = new SceneProgress(terminal, options.json === true);
    return await programs.scene({ ...options, operation, emit: (event) => progress.show(event), signal: stop.signal });
  };
  const told = (json: boolean | undefined, result: OperationResult, text: string): void =>
    json === true ? printJson(terminal, result) : void terminal.stdout.write(`${text}\n`);

  const activate = printing(scene.command("activate"))
    .argument("<scene>", "name in scenes.yaml")
    .description("Switch to a scene as a whole, or stay with the one that is active")
    .addOption(root())
    .option("--dry-run", "print what would be done, and change nothing")
    .option("--node <node>", "ask this node of the controller instead, by name or id")
    .action(async (name: string, { json, dryRun, node, ...options }: Options & { dryRun?: boolean; node?: string }) => {
      if (node !== undefined) return askNode({ terminal, node, scene: name, json });
      if (dryRun === true) return dry(terminal, json, (await run(options, { op: "plan", scene: name })) as Plan);
      const began = terminal.clock.monotonicMs();
      const plan = await run({ ...options, json: json === true }, { op: "activate", scene: name });
      told(json, plan, `${name} is active (${((terminal.clock.monotonicMs() - began) / 1000).toFixed(1)} s)`);
    });
  example(
    activate,
    "holdfast scene activate chat",
    "holdfast scene activate chat --dry-run",
    "holdfast scene activate chat --node anna",
  );

  const adopt = printing(scene.command("adopt"))
    .argument("<scene>", "name in scenes.yaml")
    .description("Take over the very scene that already runs; starts and stops nothing")
    .addOption(root())
    .action(async (name: string, { json, ...options }: Options) => {
      told(json, await run(options, { op: "adopt", scene: name }), `${name} is adopted`);
    });
  example(adopt, "holdfast scene adopt chat");

  const resume = printing(scene.command("resume"))
    .description("End what was begun, and bring about the scene that is wished for; what is healthy stays")
    .addOption(root())
    .action(async ({ json, ...options }: Options) => {
      const result = await run(options, { op: "resume" });
      told(json, result, "text" in result ? result.text : "resumed");
    });
  example(resume, "holdfast scene resume");

  const stop = printing(scene.command("stop"))
    .description("Stop every model of the scene; the gateway stays and says so")
    .addOption(root())
    .option("--gateway", "stop the gateway too")
    .action(async ({ json, gateway, ...options }: Options & { gateway?: boolean }) => {
      const result = await run(options, { op: gateway === true ? "close" : "stop" });
      told(json, result, "No scene is active.");
    });
  example(stop, "holdfast scene stop", "holdfast scene stop --gateway");
}

type AskNode = {
  readonly terminal: Terminal;
  readonly node: string;
  readonly scene: string;
  readonly json: boolean | undefined;
};

const ASK_LOOK_MS = 500;

/** Waits for the node's own word: it decides. Ctrl-C leaves the wish where it is. */
async function askNode({ terminal, node, scene, json }: AskNode): Promise<void> {
  const client = connect(terminal);
  const { id: nodeId, name } = await findNode(client, node);
  const asked = await client.call("nodeScene", { params: { nodeId }, body: { scene } });
  const number = BigInt(asked.wish?.number ?? "0");
  terminal.stderr.write(`${name} is asked for ${scene}; it answers with its next heartbeats\n`);
  const leave = new AbortController();
  using _ = terminal.onInterrupt(() => leave.abort());
  while (!leave.signal.aborted) {
    const seen = await client.call("nodeShow", { params: { nodeId } });
    if (BigInt(seen.wish?.number ?? "0") > number)
      throw new Failure("conflict", "somebody asked for another scene meanwhile");
    const told = seen.scenes?.wish;
    if (told !== null && told !== undefined && BigInt(told.number) === number && told.state !== "under-way") {
      if (told.state === "refused") throw new Failure("scene_refused", `${name}: ${told.text}`);
      if (json === true) printJson(terminal, seen);
      else terminal.stdout.write(`${name}: ${told.text}\n`);
      return;
    }
    await terminal.clock.sleep(ASK_LOOK_MS, leave.signal);
  }
  throw new Failure("usage", `left; ${name} goes on with what it was asked for`);
}

function dry(terminal: Terminal, json: boolean | undefined, plan: Plan): void {
  if (json === true) printJson(terminal, plan);
  else terminal.stdout.write(planText(plan));
  if (plan.problems.length > 0)
    throw new Failure("scene_refused", `${plan.scene} would not be activated: ${plan.problems.join("; ")}`);
}

function statusText(status: SceneStatus): string {
  const { lastError, availableMemory, models, gateways } = status;
  const head = fields([
    ["active", status.active],
    ["wished for", status.desired === status.active ? null : status.desired],
    ["switching to", status.transition],
    ["busy with", status.busy],
    ["before", status.lastKnownGood],
    ["doubt", status.doubt],
    [
      "memory",
      availableMemory === null ? null : `${sizeText(availableMemory.bytes)} available (${availableMemory.source})`,
    ],
    ["agent", status.agentPid === null ? "none runs" : `pid ${status.agentPid}`],
    ["last error", lastError === null ? null : visible(`${lastError.at} ${lastError.scene ?? ""}: ${lastError.error}`)],
    ["way back", lastError?.restore ?? null],
  ]);
  const modelRows = models.map(({ name, condition, pid, port, memory, why }) => [
    name,
    condition,
    pid === null ? "" : String(pid),
    port === null ? "" : String(port),
    memory === null ? "" : sizeText(memory.anonymousBytes),
    memory === null || memory.swappedBytes === 0 ? "" : sizeText(memory.swappedBytes),
    visible(why),
  ]);
  const gatewayRows = gateways.map(({ name, listen, shows, model, why }) => [
    name,
    listen,
    shows,
    model ?? visible(why ?? ""),
  ]);
  return [
    head,
    modelRows.length === 0 ? "" : `\n${table(["MODEL", "IS", "PID", "PORT", "MEMORY", "SWAP", ""], modelRows)}`,
    gatewayRows.length === 0 ? "" : `\n${table(["GATEWAY", "LISTEN", "IS", ""], gatewayRows)}`,
  ].join("");
}

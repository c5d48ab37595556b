// SPDX-License-Identifier: Apache-2.0
// The options that `job submit` and `job run` share, and the submission made from them. All faults at once.

import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import type { JobSubmission } from "../protocol/job-schema.ts";
import { Failure, type Fault, messageOf } from "../std/errors.ts";
import { parseJson, unstorable } from "../std/json.ts";
import { addNeedOptions, defined, type NeedOptions, needsOf } from "./need-options.ts";
import { findNode } from "./node-commands.ts";
import type { Terminal } from "./terminal.ts";
import { parseDuration, parseEach, parsePair, parseTime, parseWhole } from "./units.ts";

export type JobOptions = NeedOptions & {
  readonly env?: Record<string, string>;
  readonly envFrom?: readonly string[];
  readonly cwd?: string;
  readonly node?: string;
  readonly model?: string;
  readonly scene?: string;
  readonly servedModel?: string;
  readonly project?: string;
  readonly priority?: number;
  readonly timeLimit?: number;
  readonly retries?: number;
  readonly notBefore?: string;
  readonly label?: Record<string, string>;
  readonly input?: string;
  readonly idempotencyKey?: string;
  readonly json?: boolean;
};

export function addJobOptions(command: Command): Command {
  command
    .argument("<command...>", "the program and its arguments, after --")
    .passThroughOptions()
    .option("-e, --env <name=value>", "set a variable of its environment (repeatable)", parsePair)
    .option("--env-from <name>", "take this variable from this environment (repeatable)", parseEach)
    .option("--cwd <directory>", "working directory on the node (default: one of its own)")
    .option("--node <node>", "only this node, by name or id")
    .option("--model <name>", "a registered model: its needs are added")
    .option("--scene <name>", "only where this scene is active and verified now")
    .option("--served-model <name>", "only where a scene serves this model, verified now")
    .option("--project <name>", "the project that it belongs to")
    .option("--priority <n>", "higher runs first, -100 to 100", parseWhole(-100, 100))
    .option("--time-limit <duration>", "stop it after this long, such as 10m", parseDuration)
    .option("--retries <n>", "try again this often, after a failure too", parseWhole(0, 24))
    .option("--not-before <time>", "not before this time", parseTime)
    .option("--label <name=value>", "a label (repeatable)", parsePair)
    .option("--input <file>", "a JSON file as its input (- for standard input)")
    .option("--idempotency-key <key>", "submit once for each key");
  return addNeedOptions(command);
}

export async function submissionOf(
  terminal: Terminal,
  client: Client,
  command: readonly string[],
  options: JobOptions,
): Promise<JobSubmission> {
  const faults: Fault[] = [];
  const attempt = async <Value>(place: string, work: () => Promise<Value> | Value): Promise<Value | undefined> => {
    try {
      return await work();
    } catch (error) {
      faults.push({ place, problem: messageOf(error) });
      return undefined;
    }
  };
  const environment: Record<string, string> = { ...options.env };
  for (const name of options.envFrom ?? []) {
    const value = terminal.env[name];
    if (value === undefined) faults.push({ place: "--env-from", problem: `${name} is not set here` });
    else environment[name] = value;
  }
  const { input: file, node } = options;
  const input =
    file === undefined
      ? undefined
      : await attempt(`--input ${file}`, async () => inputFrom(await terminal.readFile(file)));
  const nodeId =
    node === undefined ? undefined : await attempt("--node", async () => (await findNode(client, node)).id);
  if (options.cwd !== undefined && !options.cwd.startsWith("/"))
    faults.push({ place: "--cwd", problem: "must be an absolute path on the node" });
  const { needs, faults: needFaults } = needsOf(options, options.model !== undefined);
  faults.push(...needFaults);
  if (faults.length > 0)
    throw new Failure("usage", `${faults.length} option${faults.length > 1 ? "s are" : " is"} not right`, {
      details: faults,
    });
  const requires = {
    ...needs,
    ...defined("nodeId", nodeId),
    ...defined("model", options.model),
    ...defined("scene", options.scene),
    ...defined("servedModel", options.servedModel),
  };
  return {
    command: [...command],
    ...(Object.keys(environment).length > 0 ? { environment } : {}),
    ...defined("workingDirectory", options.cwd),
    ...defined("input", input),
    ...(Object.keys(requires).length > 0 ? { requires } : {}),
    ...defined("priority", options.priority),
    ...defined("notBefore", options.notBefore),
    ...defined("timeLimitMs", options.timeLimit),
    ...(options.retries === undefined
      ? {}
      : { retry: { maxAttempts: options.retries + 1, onFailure: options.retries > 0 } }),
    ...defined("labels", options.label),
    ...defined("project", options.project),
  };
}

/** Refused here as the controller would: a number that loses digits on the way is nobody's input. */
function inputFrom(text: string): unknown {
  const input = parseJson(text);
  const [fault] = unstorable(input, "");
  if (fault !== undefined) throw new Failure("usage", `${fault.place === "" ? "it" : fault.place} ${fault.problem}`);
  return input;
}

const SUBMIT_TRIES = 3;

/** Safe to repeat when an answer is lost: each submission has a key of its own. */
export async function submit(terminal: Terminal, client: Client, body: JobSubmission, key: string | undefined) {
  const idempotencyKey = key ?? terminal.newKey();
  for (let tries = 1; ; tries++) {
    try {
      return await client.call("jobSubmit", { body, idempotencyKey });
    } catch (error) {
      if (tries >= SUBMIT_TRIES || !(error instanceof Failure) || error.code !== "controller_unreachable") throw error;
      await terminal.clock.sleep(300 * tries);
    }
  }
}

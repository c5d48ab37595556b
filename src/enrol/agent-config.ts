// SPDX-License-Identifier: Apache-2.0
// <root>/node/agent.json: where the controller is and which node this machine is. Rule: it holds no secret, and a file
// with one in it is refused, because configuration ends in backups. All faults are told at once.

import fs from "node:fs";
import path from "node:path";
import { codeOf, Failure, type Fault } from "../std/errors.ts";
import { fileFailure } from "../std/files.ts";
import { nodeDirectory } from "./node-key.ts";

export type AgentConfig = {
  readonly controllerUrl: string;
  readonly nodeId: string;
  readonly name: string;
};

const KEYS = ["controllerUrl", "nodeId", "name"] as const;
const SECRET_KEY = /credential|secret|token|password|bearer|(^|[^a-z])key|key$/i;
const SECRET_VALUE = /hfn_[A-Za-z0-9_-]{20}|BEGIN [A-Z ]*PRIVATE KEY/;

export function agentConfigFile(root: string): string {
  return path.join(nodeDirectory(root), "agent.json");
}

/** undefined when this root is not paired. */
export function loadAgentConfig(root: string): AgentConfig | undefined {
  const file = agentConfigFile(root);
  try {
    return parseAgentConfig(fs.readFileSync(file, "utf8"), file);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error instanceof Failure ? error : fileFailure(file, error);
  }
}

export function encodeAgentConfig(config: AgentConfig): string {
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

export function parseAgentConfig(text: string, file: string): AgentConfig {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure("config_invalid", `${file} is not JSON`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Failure("config_invalid", `${file} is not a JSON object`);
  }
  const fields = new Map<string, unknown>(Object.entries(value));
  const secrets = secretFaults(fields, file);
  if (secrets.length > 0) {
    throw new Failure("secret_in_config", `${file} holds something like a secret: ${placesOf(secrets)}`, {
      details: secrets,
    });
  }
  const faults = fieldFaults(fields, file);
  if (faults.length > 0)
    throw new Failure("config_invalid", `${file} has faults at ${placesOf(faults)}`, { details: faults });
  const [controllerUrl, nodeId, name] = KEYS.map((key) => String(fields.get(key)));
  return { controllerUrl: controllerUrl ?? "", nodeId: nodeId ?? "", name: name ?? "" };
}

function secretFaults(fields: ReadonlyMap<string, unknown>, file: string): readonly Fault[] {
  return [...fields]
    .filter(([key, value]) => SECRET_KEY.test(key) || SECRET_VALUE.test(JSON.stringify(value)))
    .map(([key]) => ({
      place: `${file}: ${key}`,
      problem: "looks like a secret: give it by environment or standard input",
    }));
}

function fieldFaults(fields: ReadonlyMap<string, unknown>, file: string): readonly Fault[] {
  const unknown = [...fields.keys()].filter((key) => !KEYS.some((known) => known === key));
  const wrong = KEYS.filter((key) => typeof fields.get(key) !== "string" || fields.get(key) === "");
  const url = fields.get("controllerUrl");
  const isBadUrl = typeof url === "string" && url !== "" && !isHttpUrl(url);
  return [
    ...unknown.map((key) => ({ place: `${file}: ${key}`, problem: `is not known; known are ${KEYS.join(", ")}` })),
    ...wrong.map((key) => ({ place: `${file}: ${key}`, problem: "must be a text that is not empty" })),
    ...(isBadUrl ? [{ place: `${file}: controllerUrl`, problem: "must be an http or https address" }] : []),
  ];
}

function placesOf(faults: readonly Fault[]): string {
  return faults.map((fault) => `${fault.place.slice(fault.place.lastIndexOf(": ") + 2)} (${fault.problem})`).join("; ");
}

export function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

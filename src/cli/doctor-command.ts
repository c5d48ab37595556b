// SPDX-License-Identifier: Apache-2.0
// doctor: looks at this command, at the controller it talks to and at this machine, and says what to do about each finding.
// Rule: it looks at everything, also when something before it is broken, and changes nothing.

import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import type { Check } from "../protocol/access-schema.ts";
import { errorRow } from "../protocol/errors.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import { contextFileFrom } from "./context-file.ts";
import { example, printing, type Tree } from "./command.ts";
import { visible } from "./table.ts";
import { colours, connect, printJson, type Terminal } from "./terminal.ts";

const CLOCK_WARN_MS = 5_000;

type Part = { readonly name: string; readonly checks: readonly Check[] };

export function addDoctor(program: Command, { terminal, programs, version, setExitCode }: Tree): void {
  const doctor = printing(program.command("doctor"))
    .description("Look for what is wrong: command line, controller, this machine; exit code 1 when something is")
    .option("--root <directory>", "where everything of this machine lives (default: HOLDFAST_ROOT)")
    .action(async (options: { root?: string; json?: boolean }) => {
      const parts: Part[] = [
        { name: "controller", checks: await checkController(terminal, version) },
        {
          name: "this machine",
          checks: await programs.checkMachine(options.root === undefined ? {} : { root: options.root }),
        },
      ];
      print(terminal, parts, options.json === true);
      if (parts.some(hasFault)) setExitCode(1);
    });
  example(doctor, "holdfast doctor", "holdfast doctor --root /var/lib/holdfast --json");
}

/** Of the machine alone: it needs no context, so that it works on a node where nobody has a token. */
export function addNodeDoctor(node: Command, { terminal, programs, setExitCode }: Tree): void {
  const doctor = printing(node.command("doctor"))
    .description(
      "On the node itself: permissions, pairing, clock, the way to the controller, devices; exit code 1 on a fault",
    )
    .option("--root <directory>", "where everything of this machine lives (default: HOLDFAST_ROOT)")
    .action(async ({ root, json }: { root?: string; json?: boolean }) => {
      const checks = await programs.checkMachine(root === undefined ? {} : { root });
      const part = { name: "this machine", checks };
      print(terminal, [part], json === true);
      if (hasFault(part)) setExitCode(1);
    });
  example(doctor, "holdfast node doctor", "holdfast node doctor --root /var/lib/holdfast --json");
}

const hasFault = ({ checks }: Part): boolean => checks.some(({ state }) => state === "fault");

function print(terminal: Terminal, parts: readonly Part[], isJson: boolean): void {
  if (isJson) return printJson(terminal, Object.fromEntries(parts.map(({ name, checks }) => [name, checks])));
  for (const part of parts) printPart(terminal, part);
  const all = parts.flatMap(({ checks }) => checks);
  const count = (state: Check["state"]): number => all.filter((check) => check.state === state).length;
  terminal.stdout.write(`${all.length} looked at: ${count("fault")} faults, ${count("warning")} warnings.\n`);
}

function printPart(terminal: Terminal, { name, checks }: Part): void {
  const colour = colours(terminal);
  const marks = { ok: colour.green("✓"), warning: colour.yellow("!"), fault: colour.red("✗") };
  terminal.stdout.write(`${colour.bold(name)}\n`);
  const width = Math.max(...checks.map((check) => check.name.length));
  for (const { name: what, state, text, advice } of checks) {
    terminal.stdout.write(`  ${marks[state]} ${what.padEnd(width)}  ${visible(text)}\n`);
    if (advice !== "") terminal.stdout.write(`    ${" ".repeat(width)}  ${visible(advice)}\n`);
  }
  terminal.stdout.write("\n");
}

async function checkController(terminal: Terminal, version: string): Promise<readonly Check[]> {
  let client: Client;
  try {
    client = connect(terminal);
  } catch (error) {
    return [faultOf("context", error)];
  }
  const found: Check[] = [
    { name: "context", state: "ok", text: `${client.baseUrl}, from ${contextPlace(terminal)}`, advice: "" },
  ];
  try {
    found.push(await checkAnswer(terminal, client, version));
    const who = await client.call("whoami", {});
    found.push({ name: "credential", state: "ok", text: `${who.userName} (${who.scopes.join(", ")})`, advice: "" });
    if (who.scopes.includes("fleet:admin")) found.push(...(await client.call("checks", {})).checks);
    const { attention } = await client.call("overview", {});
    for (const { level, text, advice } of attention)
      found.push({ name: "fleet", state: level === "error" ? "fault" : "warning", text, advice });
  } catch (error) {
    found.push(faultOf("controller", error));
  }
  return found;
}

function contextPlace({ env }: Terminal): string {
  return env["HOLDFAST_URL"] === undefined ? contextFileFrom(env) : "HOLDFAST_URL";
}

function faultOf(name: string, error: unknown): Check {
  return { name, state: "fault", text: messageOf(error), advice: errorRow(codeOf(error)).advice };
}

/** Version and clock of the controller, against ours. */
async function checkAnswer(terminal: Terminal, client: Client, version: string): Promise<Check> {
  const health = await client.call("health", {});
  const offsetMs = Date.parse(health.now) - terminal.clock.now();
  if (health.version !== version)
    return {
      name: "version",
      state: "warning",
      text: `the controller is ${health.version}, this command is ${version}`,
      advice: "Update the older one; both say what they do not know.",
    };
  if (Math.abs(offsetMs) > CLOCK_WARN_MS)
    return {
      name: "clock",
      state: "warning",
      text: `this machine's clock is ${(Math.abs(offsetMs) / 1000).toFixed(1)} s ${offsetMs > 0 ? "behind" : "ahead of"} the controller's`,
      advice: "Leases go by the database's clock, so nothing is lost; set this one: timedatectl set-ntp true",
    };
  return { name: "version", state: "ok", text: `${version} here and there, clocks agree`, advice: "" };
}

// SPDX-License-Identifier: Apache-2.0
// node pair: a single-use code and the one command that enrols a machine with it; --watch follows it until it is online.

import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import type { Pairing, PairingCode } from "../protocol/enrol-schema.ts";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import { visible } from "./table.ts";
import { colours, connect, printJson, type Terminal } from "./terminal.ts";

type PairOptions = { readonly json?: boolean; readonly takeOver?: boolean; readonly watch?: boolean };

const LOOK_EVERY_MS = 500;

export function addPair(node: Command, { terminal }: Tree): void {
  const pair = printing(node.command("pair"))
    .argument("<name>")
    .description("Make a single-use code and the command that enrols one machine under this name")
    .option("--take-over", "put a machine that was set up anew, or a new one, in the place of the node of this name")
    .option("--watch", "wait until it is online, and show each phase")
    .action(async (name: string, { json, takeOver, watch }: PairOptions) => {
      const client = connect(terminal);
      const body = { name, ...(takeOver === true ? { takeOver } : {}) };
      const made = await client.call("pairingCreate", { body });
      if (json === true) printJson(terminal, made);
      else printCode(terminal, client, made);
      if (watch === true) await follow(terminal, client, made.id);
    });
  example(pair, "holdfast node pair anna", "holdfast node pair anna --watch", "holdfast node pair anna --take-over");
}

/** The code alone goes to standard output: a script can take it from there. */
function printCode(terminal: Terminal, client: Client, { name, code, expiresAt, commands }: PairingCode): void {
  const say = (text = ""): void => void terminal.stderr.write(`${text}\n`);
  say(`The code for ${name}, shown only now and good until ${expiresAt}:`);
  say();
  terminal.stdout.write(`${code}\n`);
  say();
  if (commands === null) {
    say("This controller has no bundle of the agent (npm run bundle makes one). In a checkout on that machine:");
    say();
    say("  npm ci");
    say("  read -rs HOLDFAST_PAIRING_CODE && export HOLDFAST_PAIRING_CODE   # paste the code");
    say(`  npx holdfast agent --join ${client.baseUrl}`);
  } else {
    say("On that machine, as root or as any user (the script asks for the code, or takes it from the environment):");
    say();
    say(`  ${commands.run}`);
    say();
    say("To read it first:");
    say();
    for (const line of commands.read) say(`  ${line}`);
  }
  const address = commands?.run ?? client.baseUrl;
  if (!/\/\/(127\.|localhost|\[::1\])/.test(address)) return;
  say();
  say("This controller listens on this machine only: start it with --listen HOST:PORT for others to reach it.");
}

async function follow(terminal: Terminal, client: Client, pairingId: string): Promise<void> {
  const interrupted = new AbortController();
  using _ = terminal.onInterrupt(() => interrupted.abort());
  const paint = colours(terminal, "stderr");
  let told = 0;
  while (!interrupted.signal.aborted) {
    const pairing = await client.call("pairingShow", { params: { pairingId } });
    for (const phase of pairing.phases.slice(told)) {
      if (phase.outcome === "begun") continue;
      const mark = phase.outcome === "done" ? paint.green("✓") : paint.red("✗");
      terminal.stderr.write(`${mark} ${phase.phase}${phase.detail === "" ? "" : `: ${visible(phase.detail)}`}\n`);
    }
    told = pairing.phases.length;
    if (isOver(pairing) || (await isOnline(terminal, client, pairing))) break;
    await terminal.clock.sleep(LOOK_EVERY_MS, interrupted.signal);
  }
}

/** Also when nothing starts the agent there by itself, and a person does. */
async function isOnline(terminal: Terminal, client: Client, { nodeId, name }: Pairing): Promise<boolean> {
  if (nodeId === null) return false;
  const { online, facts } = await client.call("nodeShow", { params: { nodeId } });
  if (online) terminal.stderr.write(`${name} is online, version ${facts?.version ?? "unknown"}\n`);
  return online;
}

/** Throws when it can no longer succeed; a failed run may be repeated while the code lives. */
function isOver({ state, name, phases }: Pairing): boolean {
  if (phases.at(-1)?.phase === "prove" && phases.at(-1)?.outcome === "done") return true;
  if (state === "expired")
    throw new Failure("pairing_code_expired", `nobody used the code for ${name} before it expired`);
  return false;
}

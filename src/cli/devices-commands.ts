// SPDX-License-Identifier: Apache-2.0
// devices status | protect | unprotect | check, on a node: its GPUs, and which accounts get to them.

import type { Command } from "commander";
import type { Check } from "../protocol/access-schema.ts";
import { deviceAdvice } from "../protocol/device-advice.ts";
import { errorRow } from "../protocol/errors.ts";
import { shellLine } from "../std/text.ts";
import { example, printing, type Tree } from "./command.ts";
import type { DevicesSeen, DevicesWish, ProtectionRun } from "./programs.ts";
import { fields, table, visible } from "./table.ts";
import { colours, printJson, type Terminal } from "./terminal.ts";
import { gpuMemory } from "./node-commands.ts";
import { parseEach } from "./units.ts";

export function addDevicesCommands(program: Command, tree: Tree): void {
  const devices = program.command("devices").description("The GPUs of this machine, and which accounts get to them");
  example(devices, "holdfast devices status", "holdfast devices protect --account holdfast");
  addStatus(devices, tree);
  addProtect(devices, tree);
  addUnprotect(devices, tree);
  addCheck(devices, tree);
}

function addStatus(devices: Command, { terminal, programs }: Tree): void {
  const status = printing(devices.command("status"))
    .description("Show the GPUs as this account gets to them, and how they are protected")
    .action(async ({ json }: { json?: boolean }) => {
      const seen = await programs.devicesStatus();
      if (json === true) return printJson(terminal, seen);
      printStatus(terminal, seen);
    });
  example(status, "holdfast devices status", "holdfast devices status --json");
}

type ProtectOptions = {
  readonly dryRun?: boolean;
  readonly account?: readonly string[];
  readonly group?: string;
  readonly denyUnit?: readonly string[];
  readonly lockModprobe?: boolean;
  readonly lockDesktop?: boolean;
  readonly json?: boolean;
};

function addProtect(devices: Command, { terminal, programs }: Tree): void {
  const protect = printing(devices.command("protect"))
    .description("Give the device nodes to one group, so that exactly the declared accounts get to the GPUs")
    .option("--dry-run", "print every file and command, and change nothing")
    .option("--account <name>", "an account that gets to them; the first is the agent's (default: holdfast)", parseEach)
    .option("--group <name>", "the group; made if it is not there (default: video with NVIDIA, else render)")
    .option("--deny-unit <unit>", "a service that gets no devices at all; repeat it", parseEach)
    .option("--lock-modprobe", "let only root and the group run nvidia-modprobe, which opens the nodes to everybody")
    .option("--lock-desktop", "accept that people at this machine's desktop lose the GPU")
    .action(async (options: ProtectOptions) => {
      const run = await programs.protectDevices(wishFrom(options));
      if (options.json === true) return printJson(terminal, run);
      if (options.dryRun === true) return printDryRun(terminal, run);
      const { group, accounts } = run.protection;
      for (const change of run.changes) terminal.stdout.write(`  ${visible(change)}\n`);
      if (run.changes.length === 0) terminal.stdout.write("Nothing had to be changed.\n");
      terminal.stdout.write(`The GPUs are for ${accounts.join(", ")} alone, by the group ${group}.\n`);
      terminal.stdout.write(
        "Services that run already keep what they have: restart them. Prove it: holdfast devices check\n",
      );
    });
  example(
    protect,
    "holdfast devices protect --dry-run",
    "holdfast devices protect --account holdfast --account llm --group holdfast-gpu --lock-modprobe",
  );
}

function wishFrom(options: ProtectOptions): DevicesWish {
  return {
    isDryRun: options.dryRun === true,
    ...(options.account === undefined ? {} : { accounts: options.account }),
    ...(options.group === undefined ? {} : { group: options.group }),
    ...(options.denyUnit === undefined ? {} : { deniedUnits: options.denyUnit }),
    ...(options.lockModprobe === true ? { isModprobeLocked: true } : {}),
    ...(options.lockDesktop === true ? { isDesktopLocked: true } : {}),
  };
}

function printDryRun(terminal: Terminal, { files, commands }: ProtectionRun): void {
  for (const { path, mode, text } of files)
    terminal.stdout.write(`### ${path} (mode ${mode.toString(8)})\n${text}${text.endsWith("\n") ? "" : "\n"}\n`);
  terminal.stdout.write("### commands\n");
  for (const { argv, why } of commands) terminal.stdout.write(`${shellLine(argv)}   # ${why}\n`);
  terminal.stdout.write("\nNothing was changed.\n");
}

function addUnprotect(devices: Command, { terminal, programs }: Tree): void {
  const unprotect = printing(devices.command("unprotect"))
    .description("Take the protection back: remove its files, and give nodes and groups what they had")
    .action(async ({ json }: { json?: boolean }) => {
      const changes = await programs.unprotectDevices();
      if (json === true) return printJson(terminal, { changes });
      for (const change of changes) terminal.stdout.write(`  ${visible(change)}\n`);
      terminal.stdout.write(changes.length === 0 ? "There was no protection.\n" : "The protection is taken back.\n");
    });
  example(unprotect, "holdfast devices unprotect");
}

function addCheck(devices: Command, { terminal, programs, setExitCode }: Tree): void {
  const check = printing(devices.command("check"))
    .description("Open the device nodes as the declared accounts and as others, and say who gets in")
    .option("--account <name>", "test this account instead of the declared ones; repeat it", parseEach)
    .option("--denied <name>", "an account that must be refused (default: nobody and the controller's)", parseEach)
    .action(async (options: { account?: readonly string[]; denied?: readonly string[]; json?: boolean }) => {
      const findings = await programs.checkDevices({
        ...(options.account === undefined ? {} : { accounts: options.account }),
        ...(options.denied === undefined ? {} : { denied: options.denied }),
      });
      const isHeld = findings.every(({ state }) => state !== "fault");
      if (options.json === true) printJson(terminal, { isHeld, findings });
      else printFindings(terminal, findings, isHeld);
      if (!isHeld) setExitCode(errorRow("devices_open").exit);
    });
  example(check, "holdfast devices check", "holdfast devices check --account llm --denied alice");
}

function printFindings(terminal: Terminal, findings: readonly Check[], isHeld: boolean): void {
  const colour = colours(terminal);
  const marks = { ok: colour.green("✓"), warning: colour.yellow("!"), fault: colour.red("✗") };
  const width = Math.max(...findings.map(({ name }) => name.length));
  for (const { name, state, text, advice } of findings) {
    terminal.stdout.write(`  ${marks[state]} ${visible(name).padEnd(width)}  ${visible(text)}\n`);
    if (advice !== "") terminal.stdout.write(`    ${" ".repeat(width)}  ${visible(advice)}\n`);
  }
  terminal.stdout.write(isHeld ? "The protection holds.\n" : "The protection does not hold.\n");
}

function printStatus(terminal: Terminal, seen: DevicesSeen): void {
  const rows = seen.devices.map((device) => [
    visible(device.name),
    device.address ?? "",
    gpuMemory(device),
    visible(device.driver ?? "none"),
    device.state,
    visible(device.reason ?? ""),
  ]);
  terminal.stdout.write(
    rows.length === 0 ? "The kernel shows no GPU.\n" : table(["GPU", "ADDRESS", "MEMORY", "DRIVER", "STATE", ""], rows),
  );
  for (const advice of new Set(seen.devices.map(deviceAdvice).filter((text) => text !== "")))
    terminal.stdout.write(`${advice}\n`);
  terminal.stdout.write("\n");
  const notes = {
    none: "none: every account may get to them; holdfast devices protect",
    whole: "holdfast devices check proves it",
    "half-done": "cut off before its end: run holdfast devices protect again, or unprotect",
    unreadable: "what was declared cannot be read: run holdfast devices unprotect",
  };
  terminal.stdout.write(
    fields([
      ["looked at by", seen.account],
      ["protection", notes[seen.protection]],
      ["group", seen.group],
      ["accounts", seen.accounts.join(", ")],
      ["healed", seen.healed === 0 ? null : `${seen.healed} times since boot`],
    ]),
  );
  if (seen.nodes.length === 0) return;
  terminal.stdout.write(
    `\n${table(
      ["NODE", "RIGHTS"],
      seen.nodes.map(({ node, rights }) => [node, rights ?? "missing"]),
    )}`,
  );
}

// SPDX-License-Identifier: Apache-2.0
// Protects and unprotects. Rule: what is about to be done is written down before, so that a protection that was cut off is
// completed by the next one or undone; what is not ours is neither overwritten nor removed.

import fs from "node:fs";
import path from "node:path";
import { codeOf, Failure } from "../std/errors.ts";
import { syncDirectory } from "../std/files.ts";
import { type Facts, readFileOrUndefined, rightsOf } from "./protection-facts.ts";
import type { Command, Plan } from "./protection-plan.ts";
import {
  HOOK_FILE,
  MARK,
  MODPROBE_FILE,
  type Protection,
  RULES_FILE,
  STATE_FILE,
  UNIT_DIRECTORY,
} from "./protection.ts";
import { listNames } from "./kernel-files.ts";
import { ALL_UNITS, DROP_IN, HEAL_UNIT, protectionFiles, type ProtectionFile, unitsFor } from "./protection-text.ts";
import { runTool } from "./tool.ts";

const COMMAND_DEADLINE_MS = 60_000;

/** What a protection will write and run, for people to read before. */
export function filesOf(plan: Plan): readonly ProtectionFile[] {
  return protectionFiles(plan.protection, plan.gid);
}

/** A file of ours that somebody else put there. */
export function foreignFiles(files: readonly ProtectionFile[]): readonly string[] {
  return files.map((file) => file.path).filter((file) => readFileOrUndefined(file)?.includes(MARK) === false);
}

/** What comes after the files are written; an apply that changes nothing runs only the hook. */
export function lastCommands(protection: Protection, facts: Facts): readonly Command[] {
  const lock = facts.modprobe;
  const isLocked = lock !== undefined && lock.mode === 0o4750;
  return [
    ...(protection.isModprobeLocked && lock !== undefined && !isLocked
      ? [
          {
            argv: [
              "dpkg-statoverride",
              "--force-statoverride-add",
              "--update",
              "--add",
              "root",
              protection.group,
              "4750",
              lock.path,
            ],
            why: "nobody else runs nvidia-modprobe",
          },
        ]
      : []),
    ...startCommands(protection, facts),
    ...(protection.isDesktopLocked
      ? [
          {
            argv: ["udevadm", "trigger", "--action=change", "--subsystem-match=drm", "--sysname-match=renderD*"],
            why: "what the desktop was given is taken away",
          },
        ]
      : []),
  ];
}

function startCommands({ devices, deniedUnits }: Protection, { hasSystemd }: Facts): readonly Command[] {
  const units = unitsFor(devices);
  const reload = { argv: ["systemctl", "daemon-reload"], why: "systemd reads the units" };
  if (units.length === 0) return hasSystemd && deniedUnits.length > 0 ? [reload] : [];
  const rules = { argv: ["udevadm", "control", "--reload"], why: "udev reads the rules" };
  if (!hasSystemd)
    return [rules, { argv: [HOOK_FILE, "boot"], why: "the rights are set; without systemd nothing watches them" }];
  return [
    rules,
    reload,
    { argv: ["systemctl", "enable", ...units], why: "they start with the machine" },
    { argv: ["systemctl", "restart", ...units], why: "the rights are set and watched from now" },
  ];
}

/** Returns what it changed; nothing when all was as it should be. */
export async function protect(plan: Plan, facts: Facts): Promise<readonly string[]> {
  const changes: string[] = [];
  const { protection } = plan;
  const before = readFileOrUndefined(STATE_FILE);
  const done = stateText({ ...protection, isComplete: true });
  // Whom it takes out of the group is known until that is done.
  const underWay = stateText({
    ...protection,
    added: [...new Set([...(stateOf(facts)?.added ?? []), ...protection.added])],
  });
  if (before !== done) writeFile({ path: STATE_FILE, text: underWay, mode: 0o644 });
  for (const command of plan.first) {
    await run(command);
    changes.push(command.why);
  }
  const gid = plan.gid ?? (await gidOf(protection.group));
  for (const file of protectionFiles(protection, gid)) {
    if (readFileOrUndefined(file.path) === file.text && rightsOf(file.path)?.mode === file.mode) continue;
    writeFile(file);
    changes.push(`wrote ${file.path}`);
  }
  const stales = staleFiles(facts, protection);
  if (facts.hasSystemd) await disable(stales);
  for (const stale of stales) {
    fs.rmSync(stale);
    removeEmpty(path.dirname(stale));
    changes.push(`removed ${stale}`);
  }
  const nodesBefore = rightsText(protection);
  for (const command of lastCommands(protection, facts)) {
    await run(command);
    if (command.argv[0] === "dpkg-statoverride") changes.push(command.why);
  }
  for (const [node, rights] of rightsText(protection)) {
    const was = nodesBefore.get(node);
    if (was !== rights) changes.push(`${node} is ${rights}, was ${was ?? "missing"}`);
  }
  if (before !== done) writeFile({ path: STATE_FILE, text: done, mode: 0o644 });
  return changes;
}

const stateText = (protection: Protection): string => `${JSON.stringify(protection, null, 2)}\n`;

function stateOf({ state }: Facts): Protection | undefined {
  return state === undefined || "unreadable" in state ? undefined : state;
}

/** Of services that are no longer denied, and of cards that are gone. */
function staleFiles(facts: Facts, protection: Protection): readonly string[] {
  const wanted = new Set(protectionFiles(protection, 0).map((file) => file.path));
  return ourFiles(stateOf(facts)).filter((file) => !wanted.has(file));
}

function rightsText(protection: Protection): ReadonlyMap<string, string> {
  const nodes = [
    ...new Set([
      ...Object.keys(protection.before),
      ...protection.devices.flatMap((one) => one.nodes.map((node) => `/dev/${node}`)),
    ]),
  ];
  return new Map(
    nodes.flatMap((node) => {
      const rights = rightsOf(node);
      return rights === undefined ? [] : [[node, `${rights.mode.toString(8)} ${rights.uid}:${rights.gid}`] as const];
    }),
  );
}

async function gidOf(group: string): Promise<number> {
  const found = await runTool("getent", ["group", group]);
  const gid = found.kind === "answered" ? /^[^:]+:[^:]*:(\d+):/.exec(found.output)?.[1] : undefined;
  if (gid === undefined) throw new Failure("devices_failed", `the group ${group} was made and is not there`);
  return Number(gid);
}

/** Replaced in one step: udev and systemd may read it at any moment. */
function writeFile(file: ProtectionFile): void {
  const directory = path.dirname(file.path);
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o755 });
    const temporary = `${file.path}.holdfast-new`;
    fs.rmSync(temporary, { force: true });
    const fd = fs.openSync(temporary, "wx", 0o600);
    try {
      fs.writeFileSync(fd, file.text);
      fs.fchmodSync(fd, file.mode);
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    fs.renameSync(temporary, file.path);
    syncDirectory(directory);
  } catch (error) {
    throw new Failure("devices_failed", `${file.path} cannot be written (${codeOf(error)})`, { cause: error });
  }
}

async function run({ argv }: Command): Promise<void> {
  const [program = "", ...parameters] = argv;
  const end = await runTool(program, parameters, { deadlineMs: COMMAND_DEADLINE_MS });
  if (end.kind === "answered") return;
  const how = end.kind === "failed" ? end.message : end.kind === "missing" ? "it is not installed" : "it did not end";
  throw new Failure("devices_failed", `${argv.join(" ")}: ${how}`);
}

/** Takes back everything that is ours, as far as it is there, also of a protection that was cut off. */
export async function unprotect(facts: Facts): Promise<readonly string[]> {
  const changes: string[] = [];
  const state = stateOf(facts);
  const files = ourFiles(state);
  if (facts.hasSystemd) await disable(files);
  for (const file of files) {
    fs.rmSync(file);
    changes.push(`removed ${file}`);
    removeEmpty(path.dirname(file));
  }
  await quietly(["udevadm", "control", "--reload"]);
  if (facts.hasSystemd) await quietly(["systemctl", "daemon-reload"]);
  if (state !== undefined) changes.push(...(await undo(state, facts)));
  if (facts.state !== undefined) {
    fs.rmSync(STATE_FILE, { force: true });
    removeEmpty(path.dirname(STATE_FILE));
    changes.push(`removed ${STATE_FILE}`);
  }
  return changes;
}

/** Before their files go. */
async function disable(files: readonly string[]): Promise<void> {
  const units = ALL_UNITS.filter((unit) => files.includes(`${UNIT_DIRECTORY}/${unit}`));
  if (units.length > 0) await quietly(["systemctl", "disable", "--now", ...units]);
}

/** What bears our mark in every place where we write, whatever a protection that was cut off has declared since. */
function ourFiles(state: Protection | undefined): readonly string[] {
  const nothing = { group: "", devices: [], deniedUnits: [], isDesktopLocked: false };
  const units = [...ALL_UNITS, HEAL_UNIT].map((unit) => path.join(UNIT_DIRECTORY, unit));
  const dropIns = listNames(UNIT_DIRECTORY)
    .filter((name) => name.endsWith(".service.d"))
    .map((name) => path.join(UNIT_DIRECTORY, name, DROP_IN));
  const known = protectionFiles(state ?? nothing, 0).map((file) => file.path);
  const all = [...known, HOOK_FILE, RULES_FILE, MODPROBE_FILE, ...units, ...dropIns];
  return [...new Set(all)].filter((file) => readFileOrUndefined(file)?.includes(MARK) === true);
}

/** Rights of the nodes, the group's members, nvidia-modprobe. */
async function undo(state: Protection, facts: Facts): Promise<readonly string[]> {
  const changes: string[] = [];
  const lock = facts.modprobe;
  if (state.isModprobeLocked && lock !== undefined && lock.mode === 0o4750) {
    await quietly(["dpkg-statoverride", "--remove", lock.path]);
    // In this order: a change of owner takes the setuid bit away.
    fs.chownSync(lock.path, 0, 0);
    fs.chmodSync(lock.path, 0o4755);
    changes.push(`${lock.path} is 4755 root:root again`);
  }
  for (const [node, { mode, uid, gid }] of Object.entries(state.before)) {
    const now = rightsOf(node);
    if (now === undefined || (now.mode === mode && now.uid === uid && now.gid === gid)) continue;
    fs.chownSync(node, uid, gid);
    fs.chmodSync(node, mode);
    changes.push(`${node} is ${mode.toString(8)} ${uid}:${gid} again`);
  }
  for (const name of state.added) {
    if ((await quietly(["gpasswd", "-d", name, state.group])) === "done")
      changes.push(`took ${name} out of ${state.group}`);
  }
  if (state.hasMadeGroup && (await quietly(["groupdel", state.group])) === "done")
    changes.push(`removed the group ${state.group}`);
  return changes;
}

/** What is not there any more needs no undoing. */
async function quietly(argv: readonly string[]): Promise<"done" | "not"> {
  const [program = "", ...parameters] = argv;
  const end = await runTool(program, parameters, { deadlineMs: COMMAND_DEADLINE_MS });
  return end.kind === "answered" ? "done" : "not";
}

function removeEmpty(directory: string): void {
  const own = /\/holdfast$|\.service\.d$/;
  if (!own.test(directory)) return;
  try {
    fs.rmdirSync(directory);
  } catch (error) {
    // Somebody else's files are in it too.
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "ENOENT") throw error;
  }
}

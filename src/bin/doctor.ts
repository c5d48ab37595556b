// SPDX-License-Identifier: Apache-2.0
// What doctor looks at on this machine: directories and their permissions, disk, the embedded database, the node's pairing,
// its agent, its shim, its devices. It changes nothing; each finding says what to do.

import fs from "node:fs";
import path from "node:path";
import { type Device, deviceScanner } from "../devices/devices.ts";
import { type AgentConfig, agentConfigFile, loadAgentConfig } from "../enrol/agent-config.ts";
import { whyRefused } from "../enrol/enrol.ts";
import { readPrivateFile } from "../enrol/private-file.ts";
import { requireClock } from "../enrol/reach.ts";
import { expiryOf } from "../sign/certificate.ts";
import { needsPairing } from "../enrol/refusal.ts";
import { agentLockFile, credentialFile, loadCredential, nodeDirectory } from "../enrol/node-key.ts";
import { checkShim, shimPathFor } from "../launcher/shim.ts";
import type { Check } from "../protocol/access-schema.ts";
import { deviceAdvice } from "../protocol/device-advice.ts";
import { errorRow } from "../protocol/errors.ts";
import { gibibytes } from "../protocol/placement.ts";
import { systemClock } from "../std/clock.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import { lockHolder } from "../std/lock.ts";
import { type Environment, rootFrom } from "./settings.ts";
import { trustController } from "./tls.ts";
import { checkSandbox } from "./sandbox.ts";
import { ownSurroundings } from "./surroundings.ts";

const DISK_FAULT_BYTES = 256 * 2 ** 20;
const DISK_WARN_BYTES = 2 * 2 ** 30;
const ok = (name: string, text: string): Check => ({ name, state: "ok", text, advice: "" });
const fault = (name: string, text: string, advice: string): Check => ({ name, state: "fault", text, advice });
const warning = (name: string, text: string, advice: string): Check => ({ name, state: "warning", text, advice });

/** Looks at everything, also when something before it is broken. */
export async function checkMachine(options: { readonly root?: string }, env: Environment): Promise<readonly Check[]> {
  const root = rootFrom(env, options.root);
  if (!fs.existsSync(root))
    return [
      warning(
        "root",
        `${root} does not exist: nothing of Holdfast lives on this machine yet`,
        "Start with: npm start, or holdfast agent --join URL",
      ),
    ];
  const found: Check[] = [];
  const look = async (name: string, work: () => Promise<readonly Check[]> | readonly Check[]): Promise<void> => {
    try {
      found.push(...(await work()));
    } catch (error) {
      found.push(fault(name, messageOf(error), errorRow(codeOf(error)).advice));
    }
  };
  await look("root", () => [checkRoot(root)]);
  await look("disk", () => [checkDisk(root)]);
  await look("database files", () => checkDatabaseFiles(root));
  await look("secrets", () => checkSecrets(root));
  await look("node", () => checkNode(root));
  await look("devices", checkDevices);
  return found;
}

function checkRoot(root: string): Check {
  fs.accessSync(root, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
  const mode = fs.statSync(root).mode & 0o777;
  if ((mode & 0o022) !== 0)
    return fault(
      "root",
      `${root} can be written by other accounts (mode ${mode.toString(8)})`,
      `Run: chmod go-w ${root}`,
    );
  return ok("root", `${root} belongs to this account`);
}

function checkDisk(root: string): Check {
  const { bavail, bsize, blocks } = fs.statfsSync(root);
  const [free, all] = [bavail * bsize, blocks * bsize];
  const text = `${gibibytes(free)} of ${gibibytes(all)} are free below ${root}`;
  if (free < DISK_FAULT_BYTES)
    return fault("disk", text, "Free some space: a full disk ends jobs and stops the database.");
  if (free < DISK_WARN_BYTES || free < all / 50) return warning("disk", text, "Free some space before it is full.");
  return ok("disk", text);
}

async function checkDatabaseFiles(root: string): Promise<Check[]> {
  const directory = path.join(root, "database");
  const versionFile = path.join(directory, "PG_VERSION");
  if (!fs.existsSync(versionFile)) return [];
  // Not at the top: a node's installation has no part of the database.
  const { findPackage } = await import("../db/embedded-files.ts");
  const written = fs.readFileSync(versionFile, "utf8").trim();
  const program = findPackage().version.split(".")[0];
  const holder = lockHolder(path.join(root, "database.lock"));
  const state = holder === undefined ? "not running" : `in use by ${holder}`;
  if (written !== program)
    return [
      fault(
        "database files",
        `written by PostgreSQL ${written}, and this Holdfast brings ${program}`,
        errorRow("database_major_mismatch").advice,
      ),
    ];
  const mode = fs.statSync(directory).mode & 0o777;
  if ((mode & 0o077) !== 0)
    return [
      fault(
        "database files",
        `${directory} can be entered by others (mode ${mode.toString(8)})`,
        `Run: chmod 700 ${directory}`,
      ),
    ];
  return [ok("database files", `PostgreSQL ${written}, ${state}`)];
}

/** Every secret of this root is for its account alone. */
function checkSecrets(root: string): Check[] {
  const files = [credentialFile(root), path.join(nodeDirectory(root), "node.key")];
  const known = files.filter((file) => fs.existsSync(file));
  const open = known.filter((file) => (fs.statSync(file).mode & 0o077) !== 0);
  if (open.length > 0)
    return [
      fault(
        "secrets",
        `others can read ${open.join(" and ")}`,
        `Run: chmod 600 ${open.join(" ")}; then consider them known and rotate: holdfast node rotate NODE`,
      ),
    ];
  return known.length === 0 ? [] : [ok("secrets", `${known.length} files, for this account alone`)];
}

async function checkNode(root: string): Promise<Check[]> {
  const config = loadAgentConfig(root);
  if (config === undefined)
    return [
      warning(
        "node",
        `this machine is not paired (${agentConfigFile(root)})`,
        "That is right for a controller alone; else: holdfast node pair NAME",
      ),
    ];
  const pid = lockHolder(agentLockFile(root));
  const agent =
    pid === undefined
      ? fault("agent", "no agent runs on this root", "Start it: holdfast agent (npm start does), and look at agent.log")
      : ok("agent", `runs as pid ${pid}`);
  return [
    ok("node", `paired as ${config.name} (${config.nodeId})`),
    agent,
    ...(pid === undefined ? [] : checkSandbox(root, Number(pid))),
    ...(await checkWayUp(root, config)),
    checkLauncher(),
  ];
}

/** Does the controller answer this machine, and does it still know the node? */
async function checkWayUp(root: string, config: AgentConfig): Promise<Check[]> {
  const credential = loadCredential(root);
  if (credential === undefined)
    return [
      warning(
        "credential",
        "no file holds it; an agent that gets it by environment or a pipe is fine",
        "Else pair again.",
      ),
    ];
  trustController(root);
  const clock = await requireClock(config.controllerUrl, systemClock).catch((error: unknown) => error);
  if (codeOf(clock) === "clock_off") return [fault("clock", messageOf(clock), errorRow("clock_off").advice)];
  const refusal = needsPairing(await whyRefused(config.controllerUrl, credential));
  if (refusal !== undefined)
    return [fault("way to the controller", messageOf(refusal), errorRow(codeOf(refusal)).advice)];
  return [
    ok("way to the controller", `${config.controllerUrl} answers and knows this node`),
    ...checkCertificate(root),
  ];
}

function checkCertificate(root: string): Check[] {
  const certificate = readPrivateFile(path.join(nodeDirectory(root), "node.crt"));
  if (certificate === undefined) return [];
  const leftMs = expiryOf(certificate) - systemClock.now();
  const text = `good until ${new Date(expiryOf(certificate)).toISOString()}`;
  if (leftMs > 0) return [ok("certificate", text)];
  return [warning("certificate", `it was ${text}`, "The agent asks for a new one every six hours: look at its log.")];
}

function checkLauncher(): Check {
  const shim = shimPathFor(process.arch);
  checkShim(shim);
  return ok("launcher", `the shim for ${process.arch} can be started`);
}

function memoryText({ memoryBytes, memoryCapBytes, unified }: Device): string {
  if (memoryBytes !== null) return gibibytes(memoryBytes);
  if (unified !== true) return "memory unknown";
  return `shares the machine's memory${memoryCapBytes === null ? "" : `, ${gibibytes(memoryCapBytes)} of it at most`}`;
}

async function checkDevices(): Promise<Check[]> {
  const { devices } = await deviceScanner(systemClock, ownSurroundings()).read();
  const gpus = devices.filter((device) => device.kind === "gpu");
  if (gpus.length === 0) return [ok("devices", "no GPU")];
  return gpus.map((gpu) =>
    gpu.state === "ok"
      ? ok("devices", `${gpu.name}, ${memoryText(gpu)}`)
      : warning("devices", `${gpu.name} is ${gpu.state}: ${gpu.reason ?? "no reason is known"}`, deviceAdvice(gpu)),
  );
}

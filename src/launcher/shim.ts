// SPDX-License-Identifier: Apache-2.0
// Starts the shim (native/shim.c), the parent of every job, and holds its gate. Rule: the shim runs nothing before one byte
// comes through the gate; when this process dies instead, the pipe closes and the shim writes that nothing was started.

import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { assert } from "../std/assert.ts";
import { Failure } from "../std/errors.ts";

const PREBUILT: { readonly [arch: string]: string } = { x64: "shim-linux-x64", arm64: "shim-linux-arm64" };

/** The prebuilt shim for process.arch; `folder` only where the tree is packed differently. */
export function shimPathFor(
  arch: string,
  folder = fileURLToPath(new URL("../../native/prebuilt/", import.meta.url)),
): string {
  const name = Object.hasOwn(PREBUILT, arch) ? PREBUILT[arch] : undefined;
  if (name === undefined) {
    throw new Failure(
      "shim_unusable",
      `there is no shim for the processor "${arch}": this machine cannot run jobs (x64 and arm64 can)`,
    );
  }
  const shimPath = `${folder.replace(/\/$/, "")}/${name}`;
  checkShim(shimPath);
  return shimPath;
}

export function checkShim(shimPath: string): void {
  try {
    fs.accessSync(shimPath, fs.constants.X_OK);
  } catch (cause) {
    throw new Failure(
      "shim_unusable",
      `${shimPath} is missing or not executable: install Holdfast again, or run native/build.sh`,
      {
        cause,
      },
    );
  }
}

export type Shim = {
  /** Settles when the shim process ended: its status in words. */
  readonly ended: Promise<string>;
  /** Lets the job run. False when the shim is gone already; then its ending tells. */
  readonly openGate: () => Promise<boolean>;
  /** Closes the gate unopened: the shim writes "not-started". */
  readonly closeGate: () => void;
};

/** Exit statuses of native/shim.c. */
const STATUS_TEXT: { readonly [status: string]: string } = {
  64: "was called wrongly or lacks a system call",
  65: "could not read its params",
  66: "could not enter the launch directory",
  67: "may not become the account that jobs run as (its unit names it; it needs that account, its group and CAP_SETUID)",
  73: "could not create the output files",
  74: "could not write its identity",
  75: "could not write the exit file",
  // The shell's, which libuv's spawn asks when the kernel knows no such format.
  126: "is no program for this machine",
  127: "is no program for this machine",
};

/** Spawned in its own session, with an empty environment, no descriptor but the gate, and untied from this process. */
export async function spawnShim(shimPath: string, directory: string): Promise<Shim> {
  const child = spawn(shimPath, [directory], {
    detached: true,
    env: {},
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  await spawned(child, shimPath);
  const gate = child.stdin;
  assert(gate !== null, "the shim was spawned with a pipe");
  // A shim that is gone answers a write with EPIPE: openGate's callback tells, and the ending.
  gate.on("error", () => {});
  child.unref();
  if (gate instanceof Socket) gate.unref();
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (status, signal) => resolve(statusText(status, signal)));
  });
  return { ended, openGate: () => openGate(gate), closeGate: () => gate.destroy() };
}

function spawned(child: ChildProcess, shimPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause) => {
      reject(new Failure("shim_unusable", `${shimPath} could not be started on this machine`, { cause }));
    });
  });
}

export function statusText(status: number | null, signal: string | null): string {
  return signal === null ? (STATUS_TEXT[String(status)] ?? `ended with status ${status}`) : `was ended by ${signal}`;
}

/** One byte, then nothing more. */
export function openGate(gate: Writable): Promise<boolean> {
  return new Promise((resolve) => {
    gate.write("g", (error) => {
      gate.destroy();
      resolve(error === null || error === undefined);
    });
  });
}

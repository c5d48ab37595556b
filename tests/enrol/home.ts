// SPDX-License-Identifier: Apache-2.0
// A home directory of nobody's in which the real command of a pairing is run by any shell, as an account without root: where
// the tests run as root, as `nobody`. What the script does is seen by what lies in the home before and after.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { PairingCode } from "../../src/protocol/enrol-schema.ts";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";

export type Finished = {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly all: string;
};

export type RunOptions = {
  /** In place of sh; with arguments where it needs them. */
  readonly shell?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Before the command, in the same shell. */
  readonly before?: string;
  /** False: without the code. */
  readonly withCode?: boolean;
};

export type Home = {
  readonly directory: string;
  readonly prefix: string;
  readonly root: string;
  /** Runs `curl … | SHELL -s -- …` as the pairing shows it. */
  readonly run: (pairing: PairingCode, options?: RunOptions) => Promise<Finished>;
  /** Any command line, in the home, by that account. */
  readonly command: (line: string, env?: Readonly<Record<string, string>>) => Promise<Finished>;
  /** The installed script, by sh. */
  readonly again: (...args: readonly string[]) => Promise<Finished>;
  /** Every path below it with mode and hash. */
  readonly look: () => ReadonlyMap<string, string>;
};

const NOBODY = 65_534;
export const asNobody =
  process.getuid?.() === 0 ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : [];

export function createHome(t: Ending): Home {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "user-"));
  if (asNobody.length > 0) fs.chownSync(directory, NOBODY, NOBODY);
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  const prefix = path.join(directory, ".local/share/holdfast-agent");
  const command: Home["command"] = (line, env = {}) =>
    runCommand([...asNobody, "sh", "-c", line], { HOME: directory, TMPDIR: directory, ...env });
  return {
    directory,
    prefix,
    root: path.join(directory, ".local/share/holdfast"),
    command,
    run: ({ code, commands }, { shell = "sh", args = [], env = {}, before = "", withCode = true } = {}) => {
      const line = (commands?.run ?? "").replace("| sh ", `| ${shell} `);
      return command([before, [line, ...args].join(" ")].filter((part) => part !== "").join("; "), {
        ...(withCode ? { HOLDFAST_PAIRING_CODE: code } : {}),
        ...env,
      });
    },
    again: (...args) => command(`sh '${prefix}/bootstrap.sh' ${args.join(" ")}`),
    look: () => lookAt(directory),
  };
}

/** Nothing is inherited; standard input is closed to what the test types. */
export function runCommand(argv: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
  const [program = "", ...args] = argv;
  const marks =
    process.env["HOLDFAST_TEST_RUN"] === undefined ? {} : { HOLDFAST_TEST_RUN: process.env["HOLDFAST_TEST_RUN"] };
  const child = spawn(program, args, {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...marks, ...env },
    // A session of its own: no terminal.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    cwd: "/",
  });
  let [stdout, stderr, all] = ["", "", ""];
  child.stdout.on("data", (piece: Buffer) => ((stdout += piece.toString()), (all += piece.toString())));
  child.stderr.on("data", (piece: Buffer) => ((stderr += piece.toString()), (all += piece.toString())));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? -1, stdout, stderr, all }));
  });
}

export function lookAt(directory: string): ReadonlyMap<string, string> {
  const seen = new Map<string, string>();
  for (const entry of fs.readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    const mode = (fs.lstatSync(file).mode & 0o7777).toString(8);
    const content = entry.isFile() ? createHash("sha256").update(fs.readFileSync(file)).digest("hex").slice(0, 12) : "";
    seen.set(path.relative(directory, file), `${entry.isDirectory() ? "d" : "-"}${mode} ${content}`);
  }
  return seen;
}

// SPDX-License-Identifier: Apache-2.0
// Runs ssh and git for the access to a repository. Rules: they get an environment of ours, in which no configuration, agent or
// prompt of the account counts; each has a time limit; a program that is not installed is said to be that.

import { spawn } from "node:child_process";
import { Failure } from "../std/errors.ts";
import type { RepoPlace } from "./repo-access.ts";

export type Ran = {
  /** Null when it was killed. */
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
};

export type ChildOptions = {
  readonly place: RepoPlace;
  /** Where programs are looked for. */
  readonly searchPath: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
};

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

const PACKAGES: Readonly<Record<string, string>> = { git: "git" };

/** Throws repo_tool_missing, and repo_unreachable after the time limit. */
export function runChild(argv: readonly string[], options: ChildOptions): Promise<Ran> {
  const { place, searchPath, env = {}, timeoutMs = TIMEOUT_MS } = options;
  const [program = "", ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: searchPath, LC_ALL: "C", HOME: place.directory, ...env },
    });
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      // What it started may hold the pipes.
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
      reject(new Failure("repo_unreachable", `${program} did not end within ${timeoutMs / 1000} s`));
    }, timeoutMs);
    const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    for (const name of ["stdout", "stderr"] as const) {
      let size = 0;
      child[name].on("data", (piece: Buffer) => {
        size += piece.length;
        if (size <= OUTPUT_BYTES_MAX) output[name].push(piece);
      });
    }
    child.once("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(error.code === "ENOENT" ? missing(program) : error);
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, stdout: Buffer.concat(output.stdout), stderr: Buffer.concat(output.stderr).toString("utf8") });
    });
  });
}

function missing(program: string): Failure {
  const name = PACKAGES[program] ?? "openssh-client";
  return new Failure(
    "repo_tool_missing",
    `there is no ${program} on PATH (Debian and Ubuntu: apt-get install ${name})`,
  );
}

/** The last line that a person can use, on one line. */
export function lastWords(text: string): string {
  const lines = text
    .split("\n")
    .map((line) => line.replaceAll(/\p{Cc}/gu, " ").trim())
    .filter(
      (line) =>
        line !== "" && !/^(Please make sure you have|and the repository exists|fatal: Could not read from)/.test(line),
    );
  return (lines.at(-1) ?? "it said nothing").slice(0, 300);
}

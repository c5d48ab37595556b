// SPDX-License-Identifier: Apache-2.0
// The real command as a person runs it: through src/bin/holdfast.js, in a process of its own, with an environment of the test's.

import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanupOf } from "./cleanup.ts";
import { compileCache } from "./compile-cache.ts";

const program = fileURLToPath(new URL("../../src/bin/holdfast.js", import.meta.url));

export type Running = {
  readonly process: ChildProcess;
  readonly stdout: () => string;
  /** Standard output as it came. */
  readonly bytes: () => Buffer;
  readonly stderr: () => string;
  /** Exit code, or the name of the signal. */
  readonly ended: Promise<number | string>;
};

export type Home = {
  /** Below it: root/ is HOLDFAST_ROOT, contexts.json the context file. */
  readonly directory: string;
  readonly root: string;
  readonly start: (args: readonly string[], env?: Record<string, string>) => Running;
  /** input: what standard input holds; nothing without it. */
  readonly run: (args: readonly string[], env?: Record<string, string>, input?: string) => Promise<Finished>;
};

export type Finished = { readonly code: number | string; readonly stdout: string; readonly stderr: string };

/** A home of its own for one test; what was started in it and still runs at the end is killed. */
export function createHome(t: TestContext): Home {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "home-"));
  fs.chmodSync(directory, 0o755);
  const root = path.join(directory, "root");
  const running: Running[] = [];
  cleanupOf(t).defer(async () => {
    for (const one of running) one.process.kill("SIGTERM");
    await Promise.all(running.map((one) => one.ended));
    fs.rmSync(directory, { recursive: true, force: true });
  });
  const start = (args: readonly string[], env: Record<string, string> = {}, input?: string): Running => {
    const child = spawn(process.execPath, [program, ...args], {
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"] ?? "",
        ...compileCache,
        HOME: directory,
        HOLDFAST_ROOT: root,
        HOLDFAST_CONTEXT_FILE: path.join(directory, "contexts.json"),
        HOLDFAST_LISTEN: "127.0.0.1:0",
        ...marks(),
        ...env,
      },
    });
    child.stdin?.on("error", () => {}).end(input);
    const streams = { stdout: child.stdout, stderr: child.stderr };
    const texts = { stdout: "", stderr: "" };
    const pieces: Buffer[] = [];
    streams.stdout?.on("data", (piece: Buffer) => pieces.push(piece));
    for (const stream of ["stdout", "stderr"] as const) {
      const decoder = new TextDecoder();
      streams[stream]?.on("data", (piece: Buffer) => {
        texts[stream] += decoder.decode(piece, { stream: true });
      });
    }
    const ended = new Promise<number | string>((resolve) =>
      child.once("close", (code, signal) => resolve(code ?? signal ?? "?")),
    );
    const one: Running = {
      process: child,
      stdout: () => texts.stdout,
      bytes: () => Buffer.concat(pieces),
      stderr: () => texts.stderr,
      ended,
    };
    running.push(one);
    return one;
  };
  return {
    directory,
    root,
    start,
    run: async (args, env, input) => {
      const one = start(args, env, input);
      return { code: await one.ended, stdout: one.stdout(), stderr: one.stderr() };
    },
  };
}

/** By these the test runner finds what a test left running. */
function marks(): Record<string, string> {
  const run = process.env["HOLDFAST_TEST_RUN"];
  return run === undefined ? {} : { HOLDFAST_TEST_RUN: run };
}

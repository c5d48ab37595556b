// SPDX-License-Identifier: Apache-2.0
// A scripted model server for tests, by its command line: stub-model-main.ts does what these options say and nothing else.
// It says 503 while it loads, then its alias in /v1/models and "I am ALIAS." to each question. GET /stats tells what it
// counted; POST /control changes what it does: { alias, hangs, isDeaf, refuseMs, holdMb, growMbPerS, exitCode }. SIGTERM ends it
// with 0.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanupOf } from "./cleanup.ts";

export type StubModelOptions = {
  /** A text where a registry puts the number in. */
  readonly port: number | string;
  /** What it says that it is; a wrong one is one that nobody asked for. */
  readonly alias: string;
  /** What it says after a SIGUSR2. */
  readonly nextAlias?: string;
  readonly host?: string;

  /** From its start until it is ready. */
  readonly loadMs?: number;
  /** Meanwhile: nothing that shows (the default), computing, reading a file, or printing lines. */
  readonly loadBy?: "nothing" | "cpu" | "file" | "output";
  /** Is never ready, or when POST /control says hangs: false. */
  readonly hangs?: boolean;
  /** Ends with this exit code instead of becoming ready. */
  readonly crashCode?: number;
  /** At the start (the default), when it is ready, or never. */
  readonly listens?: "first" | "ready" | "never";

  /** So long after it is ready it ends, with exitCode (1). */
  readonly exitAfterMs?: number;
  readonly exitCode?: number;
  /** So long after it is ready everything but /health is an empty 400. */
  readonly refuseMs?: number;
  /** Takes connections and never answers. */
  readonly isDeaf?: boolean;

  readonly ignoresTerm?: boolean;
  /** Between SIGTERM and its end; it serves meanwhile. */
  readonly lingerMs?: number;
  /**
   * A grandchild in a session of its own that ignores SIGTERM. server: it is the one that serves; whoever stops the process
   * that was started sees it end at once. holder: it only lives, with leakMb of memory.
   */
  readonly leaks?: "server" | "holder";
  /** How long that one lives on without its parent (60 s). */
  readonly leakMs?: number;
  readonly leakMb?: number;

  /** A stream: so many events (8) of so many bytes (8), this far apart (0), after so long a silence (0). */
  readonly events?: number;
  readonly eventBytes?: number;
  readonly gapMs?: number;
  readonly silenceMs?: number;

  /** On standard output, for printMs (without end). */
  readonly printMbPerS?: number;
  readonly printMs?: number;
  /** Memory that it takes at its start, page by page. */
  readonly holdMb?: number;
  /** How fast it takes more once it is ready, up to growToMb (without end). */
  readonly growMbPerS?: number;
  readonly growToMb?: number;
};

/** What a request may say of its own answer, under "stub" in its body. */
export type StubAnswer = Pick<StubModelOptions, "events" | "eventBytes" | "gapMs" | "silenceMs">;

/** GET /stats. */
export type StubStats = {
  readonly pid: number;
  readonly alias: string;
  readonly isReady: boolean;
  readonly connections: number;
  readonly asked: number;
  readonly answered: number;
  /** Answers whose client went away before their end. */
  readonly cancelled: number;
  readonly eventsSent: number;
  readonly heldMb: number;
};

const program = fileURLToPath(new URL("stub-model-main.ts", import.meta.url));
const cache = fileURLToPath(new URL("../../node_modules/.cache/stub-model", import.meta.url));

/** Its command line. env(1) names the cache of compiled code and is Node then: half the time from start to listening. */
export function stubModel(options: StubModelOptions): readonly string[] {
  return ["/usr/bin/env", `NODE_COMPILE_CACHE=${cache}`, process.execPath, path.resolve(program), ...flagsOf(options)];
}

function flagsOf(options: StubModelOptions): readonly string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const flag = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [flag] : [flag, String(value)];
  });
}

export type RunningStub = {
  readonly process: ChildProcess;
  readonly url: string;
  /** What it printed, both streams. */
  readonly output: () => string;
  /** Exit code, or the name of the signal. */
  readonly ended: Promise<number | string>;
  readonly stats: () => Promise<StubStats>;
  readonly control: (told: Partial<StubModelOptions>) => Promise<StubStats>;
};

/** Runs one for this test without Holdfast; it is killed at the end. A grandchild of it is not: give it a short leakMs. */
export function startStub(t: TestContext, options: StubModelOptions): RunningStub {
  const [command = "", ...args] = stubModel(options);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = `${output}${text}`.slice(-100_000);
    });
  const ended = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  cleanupOf(t).defer(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const host = options.host ?? "127.0.0.1";
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${options.port}`;
  const ask = async (where: string, init?: RequestInit): Promise<StubStats> =>
    (await (await fetch(`${url}${where}`, init)).json()) as StubStats;
  return {
    process: child,
    url,
    output: () => output,
    ended,
    stats: () => ask("/stats"),
    control: (told) => ask("/control", { method: "POST", body: JSON.stringify(told) }),
  };
}

const FIRST_PORT = 10_000;
/** From here on the kernel gives ports to connections. */
const LAST_PORT = 32_000;
const given = new Set<number>();

/** A port on which nobody listens, that no connection is given by itself, and that this process was not told before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    if (given.has(port)) continue;
    given.add(port);
    if ((await isFree(port, "::")) && (await isFree(port, "127.0.0.1"))) return port;
  }
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}

// SPDX-License-Identifier: Apache-2.0
// A machine with scenes for a test: a root with a scenes.yaml, the command, an agent without a controller, and requests through
// the gateway. Everything that was started is gone afterwards.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import type { SceneStatus } from "../../src/scenes/operations.ts";
import { askAgent } from "../../src/scenes/socket.ts";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { freePort, stubModel, type StubModelOptions } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { compileCache } from "../kit/compile-cache.ts";

const program = fileURLToPath(new URL("../../src/bin/holdfast.ts", import.meta.url));
const agentMain = fileURLToPath(new URL("agent-main.ts", import.meta.url));

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type AgentOptions = {
  /** Ends itself with SIGKILL at this step that lasts, counted from 1. */
  readonly dieAt?: number;
  /** Instead of a scene that is kept: this one is activated once, then the process ends. */
  readonly activate?: string;
  readonly adopt?: string;
  /** In bytes. */
  readonly floorBytes?: number;
  /** The directory of a control group that it, and what it starts, is in. */
  readonly group?: string;
};

export type Agent = {
  readonly process: ChildProcess;
  readonly stderr: () => string;
  readonly ended: Promise<number | string>;
};

export type SceneMachine = {
  readonly root: string;
  /** host:port of the gateway "main". */
  readonly gateway: string;
  readonly write: (file: unknown) => void;
  readonly run: (...args: readonly string[]) => Promise<Ran>;
  /** The same, which must succeed. */
  readonly ok: (...args: readonly string[]) => Promise<string>;
  readonly status: () => Promise<SceneStatus>;
  readonly agent: (options?: AgentOptions) => Promise<Agent>;
  /** The text of an answer through the gateway; "refused" when there is none. */
  readonly ask: (path?: string) => Promise<string>;
};

export type ModelOptions = Partial<StubModelOptions> & {
  readonly port: number;
  /** Keys of the model in scenes.yaml. */
  readonly file?: Readonly<Record<string, unknown>>;
};

/** A model of scenes.yaml that is a stub; its name is its alias and its marker. */
export function stub(name: string, { file = {}, ...options }: ModelOptions): Record<string, unknown> {
  return {
    [name]: {
      argv: stubModel({ alias: name, ...options }),
      port: options.port,
      marker: name,
      memory: "64MiB",
      ...file,
    },
  };
}

export async function createSceneMachine(t: Ending): Promise<SceneMachine> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "scenes-"));
  const port = await freePort();
  const gateway = `127.0.0.1:${port}`;
  const agents: Agent[] = [];
  const env = { PATH: process.env["PATH"] ?? "", HOME: root, HOLDFAST_ROOT: root, NO_COLOR: "1", ...compileCache };
  const run = async (...args: readonly string[]): Promise<Ran> => {
    const child = spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr, code] = await Promise.all([textOf(child.stdout), textOf(child.stderr), endOf(child)]);
    return { code: typeof code === "number" ? code : null, stdout, stderr };
  };
  const ok = async (...args: readonly string[]): Promise<string> => {
    const ran = await run(...args);
    assert.equal(ran.code, 0, `${args.join(" ")}: ${ran.stderr}`);
    return ran.stdout;
  };
  cleanupOf(t).defer(async () => {
    for (const { process: child } of agents) child.kill("SIGKILL");
    await Promise.all(agents.map(({ ended }) => ended));
    await endLaunches(root);
    fs.rmSync(root, { recursive: true, force: true });
  });
  return {
    root,
    gateway,
    write: (file) => {
      const whole = {
        version: 1,
        gateways: { main: { listen: gateway, http_status: true, drain: "2s" } },
        ...(file as object),
      };
      fs.writeFileSync(path.join(root, "scenes.yaml"), typeof file === "string" ? file : stringify(whole));
    },
    run,
    ok,
    status: async () => {
      // Asked over the socket while an agent runs: faster than a process for each look.
      const answered = await askAgent(root, { op: "status" }, () => {}, new AbortController().signal);
      return (answered ?? JSON.parse(await ok("scene", "status", "--json"))) as SceneStatus;
    },
    agent: async ({ group, ...options } = {}) => {
      const own = [process.execPath, agentMain, JSON.stringify({ root, ...options })];
      const enter = 'test -z "$0" || echo $$ > "$0/cgroup.procs" && exec "$@"';
      const child = spawn("sh", ["-c", enter, group ?? "", ...own], {
        env,
        stdio: ["ignore", "ignore", "pipe"],
      });
      let text = "";
      child.stderr.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      const agent = { process: child, stderr: () => text, ended: endOf(child) };
      agents.push(agent);
      const socket = path.join(root, ".kuda", "agent.sock");
      if (options.activate === undefined && options.adopt === undefined)
        await until(
          "the agent answers",
          () =>
            (fs.existsSync(socket) && text.includes("ready")) || child.exitCode !== null || child.signalCode !== null,
        );
      return agent;
    },
    ask: (at = "/v1/models") => ask(gateway, at),
  };
}

export function ask(address: string, at: string): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get(`http://${address}${at}`, { agent: false }, (response) => {
      void textOf(response).then((text) =>
        resolve(response.statusCode === 200 ? idOf(text) : `${response.statusCode} ${text}`),
      );
    });
    request.on("error", () => resolve("refused"));
  });
}

/** The model that a list of models names. */
function idOf(text: string): string {
  return /"id":\s*"([^"]+)"/.exec(text)?.[1] ?? text;
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  try {
    for await (const piece of stream) text += String(piece);
  } catch {
    // Cut off: what came counts.
  }
  return text;
}

function endOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => child.once("close", (code, signal) => resolve(code ?? signal ?? "?")));
}

/** What a test left running, by the shims' identity files. */
async function endLaunches(root: string): Promise<void> {
  const launches = path.join(root, "node", "launches");
  const pids = (fs.existsSync(launches) ? fs.readdirSync(launches) : []).flatMap((name) => {
    try {
      const file = path.join(launches, name, "identity");
      if (fs.existsSync(path.join(launches, name, "exit"))) return [];
      return [(JSON.parse(fs.readFileSync(file, "utf8")) as { pid: number }).pid];
    } catch {
      return [];
    }
  });
  for (const pid of pids) signal(pid, "SIGUSR1");
  await until("all launches have ended", () => pids.every((pid) => !signal(pid, 0)));
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

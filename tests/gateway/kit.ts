// SPDX-License-Identifier: Apache-2.0
// What tests of the gateway share: model stand-ins as processes of their own, a gateway in this process or as one of its own,
// fronts on free ports.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { type GatewayControl, gatewayControl } from "../../src/gateway/control-client.ts";
import type { FrontOptions } from "../../src/gateway/front.ts";
import { Gateway } from "../../src/gateway/gateway.ts";
import type { Address, Front, Upstream } from "../../src/gateway/table.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { defaultMarker } from "../../src/std/marker.ts";
import { type Identity, identityOf } from "../../src/std/process.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";

const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export type StubCounters = {
  readonly requests: number;
  readonly connections: number;
  readonly aborts: number;
  readonly resets: number;
  readonly lastAbortMs: number;
};

export type Stub = {
  readonly address: Address;
  readonly identity: Identity;
  readonly upstream: Upstream;
  readonly process: ChildProcess;
  /** Past the gateway. */
  readonly counters: () => Promise<StubCounters>;
  readonly set: (query: string) => Promise<void>;
  readonly kill: () => Promise<void>;
};

/** backlog: connections that the kernel takes for it before it does. */
export async function startStub(t: TestContext, marker: string, port = 0, backlog = 2048): Promise<Stub> {
  const program = fileOf("../kit/http-stub-main.ts");
  const child = spawn(process.execPath, [program, marker, String(port), String(backlog)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  cleanupOf(t).defer(kill);
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  const address = { host: "127.0.0.1", port: Number(String(said)) };
  const identity = identityOf(child.pid ?? 0);
  if (identity === undefined) throw new Error("the stub ended at once");
  return {
    address,
    identity,
    upstream: { address, identity, marker: defaultMarker(marker), model: marker },
    process: child,
    counters: async () => JSON.parse((await get(address, "/counters")).text) as StubCounters,
    set: async (query) => void (await get(address, `/set?${query}`)),
    kill,
  };
}

const FIRST_PORT = 10_000;
/** From here on the kernel gives ports to connections. */
const LAST_PORT = 32_000;

/** A port on which nobody listens and that no connection is given by itself. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    const server = net.createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "0.0.0.0", () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

export type TestGateway = {
  readonly gateway: Gateway;
  readonly listen: Address;
  /** Gives the one front a new target. */
  readonly set: (target: Front["target"], more?: Partial<Front>) => Promise<void>;
  readonly serve: (upstream: Upstream, more?: Partial<Front>) => Promise<void>;
  readonly hold: (more?: Partial<Front>) => Promise<void>;
  readonly refuse: (why: string, more?: Partial<Front>) => Promise<void>;
};

/** A gateway of one front in this process. */
export async function openGateway(t: TestContext, options: Partial<FrontOptions> = {}): Promise<TestGateway> {
  const gateway = new Gateway({ clock: systemClock, random: systemRandom, log: silentLog, ...options });
  const listen = { host: "127.0.0.1", port: await freePort() };
  cleanupOf(t).defer(() => gateway.close(0));
  return fronting(
    listen,
    async (front, generation) => void (await gateway.set({ fronts: [front] }, generation)),
    gateway,
  );
}

function fronting(
  listen: Address,
  tell: (front: Front, generation: number) => Promise<void>,
  gateway: Gateway,
): TestGateway {
  let generation = 0;
  const set: TestGateway["set"] = (target, more = {}) => tell({ listen, target, ...more }, generation++);
  return {
    gateway,
    listen,
    set,
    serve: async (upstream, more) => {
      await set({ kind: "serving", upstream }, more);
      await until("the upstream is proved", () => gateway.status().fronts[0]?.proof?.kind === "proved");
    },
    hold: (more) => set({ kind: "holding", why: "the scene switches" }, more),
    refuse: (why, more) => set({ kind: "refusing", why }, more),
  };
}

export type GatewayProcess = {
  readonly process: ChildProcess;
  readonly control: GatewayControl;
  readonly path: string;
  readonly stderr: () => string;
};

/** The gateway as the agent starts it. */
export async function startGateway(t: TestContext): Promise<GatewayProcess> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "gateway-"));
  const socket = path.join(directory, "control.sock");
  const child = spawn(
    process.execPath,
    [fileOf("../../src/bin/gateway-main.ts"), "--control", socket, "--drain", "0"],
    {
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  let stderr = "";
  child.stderr.on("data", (piece: Buffer) => {
    stderr += String(piece);
  });
  cleanupOf(t).defer(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    fs.rmSync(directory, { recursive: true });
  });
  const control = gatewayControl(socket);
  await until("the gateway answers", () => control.status().catch(() => undefined));
  return { process: child, control, path: socket, stderr: () => stderr };
}

export type Got = { readonly status: number | undefined; readonly text: string; readonly wasReused: boolean };

/** One GET. Rejects when there is no whole answer. */
export function get({ host, port }: Address, path: string, agent: http.Agent | false = false): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host, port, path, agent }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode,
          text: Buffer.concat(pieces).toString(),
          wasReused: request.reusedSocket,
        }),
      );
    });
    request.on("error", reject);
  });
}

/** A TCP connection whose faults are kept instead of thrown. */
export async function dial(t: TestContext, { host, port }: Address): Promise<Dialled> {
  const socket = net.connect({ host, port, allowHalfOpen: true });
  cleanupOf(t).defer(() => void socket.destroy());
  const dialled = keep(socket);
  await Promise.race([new Promise<void>((resolve) => socket.once("connect", resolve)), dialled.closed]);
  return dialled;
}

/** Ends its side too, as a client that has had its answer does; the code of the error that it closed with. */
export function leave({ socket, closed }: Dialled): Promise<string> {
  socket.end();
  return closed;
}

export type Dialled = {
  readonly socket: net.Socket;
  readonly text: () => string;
  readonly isEnded: () => boolean;
  /** The code of the error it closed with; "" without one. */
  readonly closed: Promise<string>;
};

export function keep(socket: net.Socket): Dialled {
  let text = "";
  let isEnded = false;
  let code = "";
  socket.on("data", (piece: Buffer) => {
    text += piece.toString("latin1");
  });
  socket.on("end", () => {
    isEnded = true;
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    code = error.code ?? error.message;
  });
  const closed = new Promise<string>((resolve) => socket.on("close", () => resolve(code)));
  return { socket, text: () => text, isEnded: () => isEnded, closed };
}

export type RawServer = { readonly upstream: Upstream; readonly accepted: readonly Dialled[] };

/** An upstream of plain TCP in this process, without proof. */
export async function rawServer(t: TestContext, onSocket: (socket: net.Socket) => void = () => {}): Promise<RawServer> {
  const accepted: Dialled[] = [];
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(keep(socket));
    onSocket(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanupOf(t).defer(() => {
    for (const { socket } of accepted) socket.destroy();
    server.close();
  });
  return {
    upstream: { address: { host: "127.0.0.1", port: (server.address() as net.AddressInfo).port }, model: "raw" },
    accepted,
  };
}

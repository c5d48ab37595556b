// SPDX-License-Identifier: Apache-2.0
// The control socket of a gateway: a unix socket (0600) that takes tables and tells the state. Rule: whoever may open it may
// control the gateway; one gateway has the socket, held by a lock, so that a killed one leaves nothing in the way.

import fs from "node:fs";
import net from "node:net";
import { Failure, messageOf } from "../std/errors.ts";
import { takeLock } from "../std/lock.ts";
import type { Log } from "../std/log.ts";
import { type Answered, readLines } from "./control-lines.ts";
import type { Gateway } from "./gateway.ts";
import { parseTable } from "./table.ts";

/** Of sun_path, unix(7); Node cuts a longer one without a word. */
const PATH_BYTES_MAX = 107;
const PRIVATE_UMASK = 0o177;

export type ControlOptions = { readonly path: string; readonly gateway: Gateway; readonly log: Log };

export class Control implements AsyncDisposable {
  readonly #options: ControlOptions;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  #release: () => void = () => {};

  private constructor(options: ControlOptions) {
    this.#options = options;
    this.#server = net.createServer((socket) => this.#serve(socket));
  }

  /** Resolves when it listens. Throws the Failure of a place that cannot be used, or that another gateway has. */
  static async open(options: ControlOptions): Promise<Control> {
    const { path } = options;
    if (Buffer.byteLength(path) > PATH_BYTES_MAX)
      throw new Failure("usage", `the path of a control socket has at most ${PATH_BYTES_MAX} bytes: ${path}`);
    const lock = takeLock(`${path}.lock`, String(process.pid));
    if (lock.kind === "held")
      throw new Failure("gateway_in_use", `another gateway (pid ${lock.holder}) has the control socket ${path}`);
    const control = new Control(options);
    control.#release = lock.release;
    try {
      await control.#listen(path);
    } catch (error) {
      lock.release();
      throw new Failure("listen_refused", `the control socket ${path} cannot be opened: ${messageOf(error)}`, {
        cause: error,
      });
    }
    return control;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#release();
  }

  async #listen(path: string): Promise<void> {
    fs.rmSync(path, { force: true });
    // The socket is bound within the call.
    const umask = process.umask(PRIVATE_UMASK);
    try {
      const listening = new Promise<void>((resolve, reject) => {
        this.#server.once("error", reject).listen(path, resolve);
      });
      process.umask(umask);
      await listening;
    } finally {
      process.umask(umask);
    }
  }

  #serve(socket: net.Socket): void {
    const { log } = this.#options;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", (error) => log.info({ error: messageOf(error) }, "a control connection broke"));
    let answered: Promise<unknown> = Promise.resolve();
    readLines(socket, (line) => {
      answered = answered
        .then(() => this.#answer(line))
        .then((answer) => {
          if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`);
        });
    });
  }

  async #answer(line: string): Promise<Answered> {
    const asked = parseAsked(line);
    const { gateway, log } = this.#options;
    if (asked === undefined) return invalid([{ place: "/", problem: "asks for none of set, status and metrics" }]);
    if ("status" in asked) return { ok: true, status: gateway.status() };
    if ("metrics" in asked) return { ok: true, metrics: gateway.metrics() };
    const { generation } = asked;
    if (typeof generation !== "number" || !Number.isSafeInteger(generation) || generation < 0)
      return invalid([{ place: "/generation", problem: "must be a whole number" }]);
    const parsed = parseTable(asked.set);
    if (parsed.kind === "invalid") return invalid(parsed.faults);
    const applied = await gateway.set(parsed.table, generation);
    if (applied.kind === "stale") {
      const message = `generation ${generation} is older than ${applied.generation}`;
      return { ok: false, code: "stale_generation", message, details: [], generation: applied.generation };
    }
    for (const failed of applied.failed) log.error({ ...failed }, "a front cannot listen");
    log.info({ generation, fronts: parsed.table.fronts.length }, "a table was applied");
    return { ok: true, generation, failed: applied.failed };
  }
}

type Parsed =
  | { readonly set: unknown; readonly generation: unknown }
  | { readonly status: true }
  | { readonly metrics: true };

function parseAsked(line: string): Parsed | undefined {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null) return undefined;
  if ("status" in json && json.status === true) return { status: true };
  if ("metrics" in json && json.metrics === true) return { metrics: true };
  return "set" in json ? { set: json.set, generation: "generation" in json ? json.generation : undefined } : undefined;
}

function invalid(details: Extract<Answered, { ok: false }>["details"]): Answered {
  return { ok: false, code: "invalid_request", message: "this is nothing that a gateway can do", details };
}

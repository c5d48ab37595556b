// SPDX-License-Identifier: Apache-2.0
// A model server as any other: it listens first and says 503 while it loads, then answers in the OpenAI way, one request at a
// time. Rule: a client that went away costs no further token; what waits is bounded.

import http from "node:http";
import type net from "node:net";
import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import {
  type Answer,
  type Asked,
  errorBody,
  event,
  type Kind,
  LAST_EVENT,
  pieceOfAnswer,
  readAsked,
  usagePiece,
  wholeAnswer,
} from "./chat.ts";
import { Engine, type EngineOptions, PromptTooLong } from "./engine.ts";

export type SampleServerOptions = EngineOptions & {
  /** The id in /v1/models. */
  readonly alias: string;
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly clock: Clock;
};

/** Requests that wait or run; the next one is told 429. */
const REQUESTS_MAX = 64;
const BODY_BYTES_MAX = 1024 * 1024;

const KINDS: Readonly<Record<string, Kind>> = { "/v1/chat/completions": "chat", "/v1/completions": "text" };

export class SampleServer {
  readonly #options: SampleServerOptions;
  readonly #server = http.createServer((request, response) => void this.#serve(request, response));
  readonly #created: number;
  #engine: Engine | undefined;
  #answers = 0;
  #waiting = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(options: SampleServerOptions) {
    this.#options = options;
    this.#created = Math.floor(options.clock.now() / 1000);
  }

  /** Returns its address. Throws port_taken or listen_refused. */
  async listen(): Promise<string> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", (error) => reject(listenFailure(`${host}:${port}`, error)));
      this.#server.listen({ host, port }, resolve);
    });
    const { address, family, port: taken } = this.#server.address() as net.AddressInfo;
    return `http://${family === "IPv6" ? `[${address}]` : address}:${taken}`;
  }

  /** Throws engine_missing or model_unusable. */
  async load(): Promise<void> {
    this.#engine = await Engine.load(this.#options);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    response.on("error", () => {});
    try {
      await this.#route(request, response);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, messageOf(error));
    }
  }

  async #route(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const path = (request.url ?? "").replace(/\?.*$/s, "");
    const engine = this.#engine;
    const kind = Object.hasOwn(KINDS, path) ? KINDS[path] : undefined;
    const isKnown = kind !== undefined || path === "/health" || path === "/v1/models";
    if (!isKnown) return refuse(response, 404, `there is no ${path}`);
    const method = kind === undefined ? "GET" : "POST";
    if (request.method !== method) return refuse(response, 405, `${path} takes ${method}`);
    if (engine === undefined) return refuse(response, 503, "Loading model");
    if (path === "/health") return send(response, 200, { status: "ok" });
    if (kind === undefined) return send(response, 200, this.#models());
    const body = await readBody(request);
    if (body === undefined) return refuse(response, 413, `a body of more than ${BODY_BYTES_MAX} bytes`);
    const read = readAsked(kind, body);
    if (read.kind === "refused") return refuse(response, 400, read.why);
    await this.#inTurn(response, (signal) => this.#answer({ engine, kind, asked: read.asked, response, signal }));
  }

  #models(): object {
    const { alias } = this.#options;
    return { object: "list", data: [{ id: alias, object: "model", created: this.#created, owned_by: "holdfast" }] };
  }

  /** One after the other; the signal aborts when the client goes away, also while it waits. */
  async #inTurn(response: http.ServerResponse, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#waiting >= REQUESTS_MAX) {
      response.setHeader("retry-after", "1");
      return refuse(response, 429, `${REQUESTS_MAX} requests wait already`);
    }
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    if (response.destroyed) return;
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    this.#last = turn.promise;
    this.#waiting++;
    try {
      await before;
      if (!gone.signal.aborted) await work(gone.signal);
    } finally {
      this.#waiting--;
      turn.resolve();
    }
  }

  async #answer({ engine, kind, asked, response, signal }: Turn): Promise<void> {
    const { alias: model, clock } = this.#options;
    const id = `${kind === "chat" ? "chatcmpl" : "cmpl"}-${++this.#answers}`;
    const answer: Answer = { kind, id, model, created: Math.floor(clock.now() / 1000) };
    const pieces: string[] = [];
    const onText = asked.isStream
      ? (text: string) => writeEvent(response, event(pieceOfAnswer(answer, text, null)))
      : (text: string) => void pieces.push(text);
    try {
      const { prompt, tokensMax } = asked;
      const made = await engine.generate({ prompt, tokensMax, signal, onText });
      if (made.reason === "cancelled") return;
      if (!asked.isStream) return send(response, 200, wholeAnswer(answer, pieces.join(""), made.reason, made));
      await writeEvent(response, event(pieceOfAnswer(answer, "", made.reason)));
      if (asked.isUsageWanted) await writeEvent(response, event(usagePiece(answer, made)));
      response.end(LAST_EVENT);
    } catch (error) {
      if (!(error instanceof PromptTooLong)) throw error;
      refuse(response, 400, error.message);
    }
  }
}

type Turn = {
  readonly engine: Engine;
  readonly kind: Kind;
  readonly asked: Asked;
  readonly response: http.ServerResponse;
  readonly signal: AbortSignal;
};

function send(response: http.ServerResponse, status: number, json: object): void {
  const text = JSON.stringify(json);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

function refuse(response: http.ServerResponse, status: number, message: string): void {
  send(response, status, errorBody(status, message));
}

/** Waits for a slow reader instead of keeping its events. */
async function writeEvent(response: http.ServerResponse, text: string): Promise<void> {
  if (!response.headersSent)
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  if (response.write(text) || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

/** Undefined when it is too long. */
async function readBody(request: http.IncomingMessage): Promise<string | undefined> {
  const decoder = new StringDecoder("utf8");
  let text = "";
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size <= BODY_BYTES_MAX) text += decoder.write(piece);
  }
  return size > BODY_BYTES_MAX ? undefined : text + decoder.end();
}

function listenFailure(address: string, error: Error): unknown {
  const code = codeOf(error);
  if (code === "EADDRINUSE")
    return new Failure("port_taken", `${address} is taken by another program`, { cause: error });
  if (["EACCES", "EADDRNOTAVAIL", "ENOTFOUND", "EINVAL", "EAI_AGAIN"].includes(code))
    return new Failure("listen_refused", `cannot listen on ${address}: ${messageOf(error)}`, { cause: error });
  return error;
}

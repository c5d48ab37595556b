// SPDX-License-Identifier: Apache-2.0
// How a command asks the running agent: a unix socket below the root (0600), one JSON line for the question, lines of events,
// one line with the answer. A client that goes away gives its operation up. Limits on every line.

import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { codeOf, Failure, type Fault, messageOf } from "../std/errors.ts";
import type { Emit, SceneEvent } from "./events.ts";
import type { Operation, OperationResult } from "./operations.ts";
import type { Job } from "./scenes.ts";
import { stateDirectory } from "./state.ts";

const QUESTION_BYTES_MAX = 64 * 1024;
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
const CLIENTS_MAX = 64;

/** A socket's path has a limit of its own. */
export const socketFile = (root: string): string => path.join(stateDirectory(root), "agent.sock");

type Line =
  | { readonly event: SceneEvent }
  | { readonly result: OperationResult }
  | { readonly error: { readonly code: string; readonly message: string; readonly details: readonly Fault[] } };

export type Answering = (operation: Operation, job: Job) => Promise<OperationResult>;

/** Answers until it is disposed. The caller holds the lock of the scenes: a socket that is there belongs to nobody alive. */
export async function serveOperations(root: string, answer: Answering): Promise<AsyncDisposable> {
  const file = socketFile(root);
  fs.rmSync(file, { force: true });
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    if (sockets.size >= CLIENTS_MAX) return void socket.destroy();
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    void answerOne(socket, answer);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // Made private before anybody can connect.
    const before = process.umask(0o177);
    server.listen(file, resolve);
    process.umask(before);
  });
  return {
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answerOne(socket: net.Socket, answer: Answering): Promise<void> {
  const gone = new AbortController();
  socket.on("error", () => gone.abort());
  socket.on("close", () => gone.abort());
  // A client that ends its side gives its operation up, and waits for the answer to that.
  socket.on("end", () => gone.abort());
  const say = (line: Line): void => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(line)}\n`);
  };
  try {
    const question = await firstLine(socket);
    say({ result: await answer(operationOf(question), { emit: (event) => say({ event }), signal: gone.signal }) });
  } catch (error) {
    const details = error instanceof Failure ? error.details : [];
    say({ error: { code: codeOf(error) || "internal", message: messageOf(error), details } });
  }
  socket.end();
}

function firstLine(socket: net.Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (piece: string) => {
      text += piece;
      if (text.length > QUESTION_BYTES_MAX) reject(new Failure("invalid_request", "a question that is too long"));
      else if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
    socket.on("end", () => reject(new Failure("invalid_request", "the question has no end")));
  });
}

function operationOf(text: string): Operation {
  const invalid = (): Failure => new Failure("invalid_request", "no question that this agent knows");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid();
  }
  if (typeof value !== "object" || value === null || !("op" in value)) throw invalid();
  const scene = "scene" in value && typeof value.scene === "string" ? value.scene : undefined;
  switch (value.op) {
    case "status":
    case "resume":
    case "stop":
    case "close":
      return { op: value.op };
    case "plan":
    case "activate":
    case "adopt":
      if (scene === undefined) throw invalid();
      return { op: value.op, scene };
    default:
      throw invalid();
  }
}

/** Undefined when no agent answers there. Throws what the operation threw. */
export function askAgent(
  root: string,
  operation: Operation,
  emit: Emit,
  signal: AbortSignal,
): Promise<OperationResult | undefined> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(socketFile(root));
    let text = "";
    let isConnected = false;
    const settle = (line: Line): void => {
      if ("event" in line) return emit(line.event);
      if ("result" in line) resolve(line.result);
      else reject(new Failure(line.error.code, line.error.message, { details: line.error.details }));
    };
    socket.setEncoding("utf8");
    socket.on("connect", () => {
      isConnected = true;
      socket.write(`${JSON.stringify(operation)}\n`);
    });
    socket.on("data", (piece: string) => {
      text += piece;
      if (text.length > ANSWER_BYTES_MAX) return void socket.destroy(new Error("an answer that is too long"));
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) settle(JSON.parse(line) as Line);
    });
    socket.on("error", (error) => {
      if (!isConnected && ["ENOENT", "ECONNREFUSED"].includes(codeOf(error))) return resolve(undefined);
      reject(new Failure("agent_ended", `the agent did not answer: ${messageOf(error)}`, { cause: error }));
    });
    socket.on("close", () => reject(new Failure("agent_ended", "the agent ended before it answered")));
    signal.addEventListener("abort", () => socket.end(), { once: true });
  });
}

// SPDX-License-Identifier: Apache-2.0
// What a command is given instead of globals: where to write, what the environment says, when to stop.

import pc from "picocolors";
import { type Client, createClient } from "../client/client.ts";
import type { Clock } from "../std/clock.ts";
import { Failure } from "../std/errors.ts";
import { type Context, contextFileFrom, readContexts } from "./context-file.ts";

export type Terminal = {
  readonly stdout: { write(text: string | Uint8Array): unknown; readonly isTTY?: boolean };
  readonly stderr: { write(text: string | Uint8Array): unknown; readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Draws an idempotency key. */
  readonly newKey: () => string;
  /** Calls back on Ctrl-C and SIGTERM until disposed. */
  readonly onInterrupt: (listener: () => void) => Disposable;
  readonly readFile: (file: string) => Promise<string>;
  /** Connections from now on also trust this authority (PEM). */
  readonly trust: (authority: string) => void;
  /** Asks without echo on a terminal, else takes a line of standard input for each question. */
  readonly readSecrets: (questions: readonly string[]) => Promise<readonly string[]>;
};

/** The controller of the environment, else of the current context. */
export function connect(terminal: Terminal): Client {
  const { url, token, ca } = connection(terminal);
  if (ca !== undefined) terminal.trust(ca);
  return createClient({ baseUrl: url, credential: token });
}

/** In the environment an authority is named by Node's own NODE_EXTRA_CA_CERTS. */
export function connection(terminal: Terminal): Context {
  const { HOLDFAST_URL: url, HOLDFAST_TOKEN: token } = terminal.env as {
    HOLDFAST_URL?: string;
    HOLDFAST_TOKEN?: string;
  };
  if (url !== undefined && token !== undefined) {
    if (!/^https?:\/\//.test(url))
      throw new Failure("config_invalid", `HOLDFAST_URL must be an address such as http://127.0.0.1:7440, not ${url}`);
    return { url, token };
  }
  // Half a pair would send the token of one controller to the address of another.
  if (url !== undefined || token !== undefined) {
    const [set, missing] = url === undefined ? ["HOLDFAST_TOKEN", "HOLDFAST_URL"] : ["HOLDFAST_URL", "HOLDFAST_TOKEN"];
    throw new Failure("config_invalid", `${set} is set but ${missing} is not: set both, or neither to use the context`);
  }
  const file = contextFileFrom(terminal.env);
  const contexts = readContexts(file);
  const context = contexts?.contexts[contexts.current];
  if (context === undefined)
    throw new Failure(
      "no_context",
      `no controller is known here: ${file} has no context, and HOLDFAST_URL and HOLDFAST_TOKEN are not set`,
    );
  return context;
}

/** For what is written to this stream: one may be a terminal and the other a file. */
export function colours(
  terminal: Terminal,
  stream: "stdout" | "stderr" = "stdout",
): ReturnType<typeof pc.createColors> {
  return pc.createColors(terminal[stream].isTTY === true && terminal.env["NO_COLOR"] === undefined);
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

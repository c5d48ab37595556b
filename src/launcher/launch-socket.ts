// SPDX-License-Identifier: Apache-2.0
// Shims that systemd starts, one for each connection to a socket, so that what runs inherits nothing of the agent: not its
// sandbox and, for a job where the unit names an account, not its account. Rule: the connection is the gate; who closes it unopened has
// started nothing, and no name of an account that comes through it is believed (native/account.h).

import net from "node:net";
import { codeOf, Failure } from "../std/errors.ts";
import { type Shim, openGate, statusText } from "./shim.ts";
import type { Account } from "./spec.ts";

/** groupId: the account's own group, which the agent is a member of: by it they share what is in a launch directory. */
export type JobAccount = Account & { readonly groupId: number };

export type LaunchService = {
  readonly socket: string;
  /** Whom the unit behind the socket runs these launches as; absent: the agent's own account. */
  readonly account?: JobAccount;
};

/** The same promise as spawnShim's. Throws shim_unusable. */
export async function reachShim({ socket }: LaunchService, directory: string): Promise<Shim> {
  const gate = await connected(socket);
  gate.on("error", () => {});
  gate.unref();
  const ended = new Promise<string>((resolve) => {
    gate.once("data", (status: Buffer) => resolve(statusText(status[0] ?? null, null)));
    gate.once("close", () => resolve("ended before it told who it is"));
  });
  gate.write(`${directory}\n`);
  return { ended, openGate: () => openGate(gate), closeGate: () => void gate.destroy() };
}

function connected(socket: string): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const gate = net.connect(socket);
    gate.once("connect", () => resolve(gate));
    gate.once("error", (cause) => reject(unreachable(socket, cause)));
  });
}

/** Where jobs cannot be started at all, an agent says so before it takes one. */
export function whyNoService({ socket }: LaunchService): Failure {
  return unreachable(socket, undefined);
}

function unreachable(socket: string, cause: unknown): Failure {
  const why = cause === undefined ? "is not there" : `cannot be reached (${codeOf(cause)})`;
  return new Failure(
    "shim_unusable",
    `${socket}, by which systemd starts jobs and models, ${why}: start holdfast-launch.socket`,
    {
      cause,
    },
  );
}

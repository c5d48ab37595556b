// SPDX-License-Identifier: Apache-2.0
// The agent's way to the controller. Temporary faults are retried for ever with jitter, announced when they begin and when
// they end; a permanent refusal is announced once and ends the agent. Rule: a node credential is never thrown away here.

import type { Client, Input } from "../client/client.ts";
import { errorRow } from "../protocol/errors.ts";
import type { ReplyOf } from "../protocol/route.ts";
import type { RouteName, RouteOf } from "../protocol/routes.ts";
import { backoffMs } from "../std/backoff.ts";
import type { Clock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import type { Random } from "../std/random.ts";

const RETRY = { baseMs: 200, capMs: 10_000 };
const CALL_TIMEOUT_MS = 15_000;
const PERMANENT: readonly string[] = [
  "unauthenticated",
  "forbidden",
  "node_retired",
  "session_superseded",
  "agent_too_old",
];

export type LinkOptions = {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

export class Link {
  readonly #options: LinkOptions;
  #client: Client;
  readonly #refused = new AbortController();
  #failures = 0;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#client = options.client;
  }

  /** With the credential that is good now. */
  get client(): Client {
    return this.#client;
  }

  /** The node has a new credential: what the old one was refused for meanwhile is asked again with the new one. */
  useClient(client: Client): void {
    this.#client = client;
  }

  /** Aborts, with the Failure as reason, when the controller has refused this node for good. */
  get refused(): AbortSignal {
    return this.#refused.signal;
  }

  /**
   * Answers, or throws: what the request itself did wrong, or the reason of an abort. Never gives up on a temporary fault.
   * An input that ages (a time, a list) is given as a function and made anew for each try.
   */
  async call<Name extends RouteName>(
    name: Name,
    input: Input<Name> | (() => Promise<Input<Name>>),
    options: { readonly signal: AbortSignal; readonly timeoutMs?: number },
  ): Promise<ReplyOf<RouteOf<Name>>> {
    const { clock, random } = this.#options;
    const signal = AbortSignal.any([options.signal, this.#refused.signal]);
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      const client = this.#client;
      const current = typeof input === "function" ? await input() : input;
      try {
        const reply = await client.call(name, current, { signal, timeoutMs: options.timeoutMs ?? CALL_TIMEOUT_MS });
        this.#noteSuccess();
        return reply;
      } catch (error) {
        signal.throwIfAborted();
        if (client !== this.#client && codeOf(error) === "unauthenticated") continue;
        if (PERMANENT.includes(codeOf(error))) this.#refuse(error);
        if (!(error instanceof Failure) || errorRow(error.code).retry === "never") throw error;
        this.#noteFailure(error);
        await clock.sleep(backoffMs(RETRY, tries, random), signal);
      }
    }
  }

  #refuse(error: unknown): void {
    if (this.#refused.signal.aborted) return;
    this.#options.log.error({ code: codeOf(error), error: messageOf(error) }, "the controller refuses this node");
    this.#refused.abort(error);
  }

  #noteFailure(error: Failure): void {
    this.#failures++;
    if (this.#failures === 1)
      this.#options.log.warn(
        { code: error.code, error: messageOf(error) },
        "the controller cannot be reached: trying again until it can",
      );
  }

  #noteSuccess(): void {
    if (this.#failures > 0) this.#options.log.info({ tries: this.#failures }, "the controller answers again");
    this.#failures = 0;
  }
}

// SPDX-License-Identifier: Apache-2.0
// The agent's way to the controller. Temporary faults are retried for ever with jitter, announced when they begin and when
// they end; a permanent refusal is announced once and ends the agent. Rules: a node credential is never thrown away here, and
// whether it is refused is one route's word: what another route says of it is asked there, once.

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
export const CALL_TIMEOUT_MS = 15_000;
const PERMANENT: readonly string[] = [
  "unauthenticated",
  "forbidden",
  "node_retired",
  "session_superseded",
  "agent_too_old",
];
/** Its word about a credential counts. */
const AUTHORITY = "nodeRenewals";
/** Asked about, it disturbs no session that there is. */
const NO_SESSION = `nses_${"0".repeat(26)}`;

export type LinkOptions = {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** After it a call without an answer counts as lost, and with it the connection. A heartbeat is a call. */
  readonly callTimeoutMs?: number;
};

export type CallOptions = {
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  /** Waits long by itself: asked anew as soon as another call finds that nothing answers. */
  readonly isLongPoll?: boolean;
};

export class Link {
  readonly #options: LinkOptions;
  #client: Client;
  readonly #refused = new AbortController();
  #failures = 0;
  /** Aborts when a call was not answered: what waits on the same line waits in vain. */
  #line = new AbortController();
  #asking: Promise<unknown> | undefined;

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
    options: CallOptions,
  ): Promise<ReplyOf<RouteOf<Name>>> {
    const { clock, random, callTimeoutMs = CALL_TIMEOUT_MS } = this.#options;
    const signal = AbortSignal.any([options.signal, this.#refused.signal]);
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      const client = this.#client;
      const current = typeof input === "function" ? await input() : input;
      const line = options.isLongPoll === true ? this.#line.signal : undefined;
      try {
        const reply = await client.call(name, current, {
          signal: line === undefined ? signal : AbortSignal.any([signal, line]),
          timeoutMs: options.timeoutMs ?? callTimeoutMs,
        });
        this.#noteSuccess();
        return reply;
      } catch (error) {
        signal.throwIfAborted();
        if (client !== this.#client && codeOf(error) === "unauthenticated") continue;
        if (line?.aborted !== true) await this.#judge(name, error, signal);
        await clock.sleep(backoffMs(RETRY, tries, random), signal);
      }
    }
  }

  /** Returns when it is worth another try; else throws. */
  async #judge(name: RouteName, error: unknown, signal: AbortSignal): Promise<void> {
    let word = error;
    if (codeOf(error) === "unauthenticated" && name !== AUTHORITY) {
      word = await this.#askAuthority();
      signal.throwIfAborted();
      if (word === undefined && error instanceof Failure) return this.#noteFailure(error);
    }
    if (PERMANENT.includes(codeOf(word))) this.#refuse(word);
    if (!(word instanceof Failure) || errorRow(word.code).retry === "never") throw word;
    this.#noteFailure(word);
  }

  /** Why the credential is refused; undefined when it is not. All who ask at the same time share one question. */
  #askAuthority(): Promise<unknown> {
    const ask = async (): Promise<unknown> => {
      try {
        await this.#client.call(
          AUTHORITY,
          { body: { sessionId: NO_SESSION, leases: [] } },
          { timeoutMs: CALL_TIMEOUT_MS },
        );
        return undefined;
      } catch (error) {
        return codeOf(error) === "session_superseded" ? undefined : error;
      }
    };
    this.#asking ??= ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  #refuse(error: unknown): void {
    if (this.#refused.signal.aborted) return;
    this.#options.log.error({ code: codeOf(error), error: messageOf(error) }, "the controller refuses this node");
    this.#refused.abort(error);
  }

  #noteFailure(error: Failure): void {
    this.#line.abort();
    this.#line = new AbortController();
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

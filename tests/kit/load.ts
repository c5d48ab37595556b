// SPDX-License-Identifier: Apache-2.0
// People who submit jobs all the time, each one at a time, with idempotency keys: asked again until it is accepted, waited for
// until it has ended. What they see in between is counted, not judged.

import type { Client } from "../../src/client/client.ts";
import { codeOf } from "../../src/std/errors.ts";
import { until } from "./until.ts";

export type Load = {
  /** Accepted, each once. */
  readonly accepted: ReadonlySet<string>;
  readonly ended: () => number;
  /** Answers other than what was asked for, by code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Submits no more; resolves when all that was accepted has ended. */
  readonly finish: () => Promise<void>;
};

const WITHIN_MS = 60_000;

export function startLoad(clients: readonly Client[], command: readonly string[]): Load {
  const accepted = new Set<string>();
  const refusals = new Map<string, number>();
  const stop = new AbortController();
  let ended = 0;
  /** Undefined when it was refused: the caller asks again. */
  const ask = <Answer>(question: Promise<Answer>): Promise<Answer | undefined> =>
    question.catch((error: unknown) => {
      refusals.set(codeOf(error), (refusals.get(codeOf(error)) ?? 0) + 1);
      return undefined;
    });
  const person = async (client: Client, name: string): Promise<void> => {
    for (let number = 1; !stop.signal.aborted; number++) {
      const body = { command: [...command], retry: { maxAttempts: 20, onFailure: false } };
      const submit = () => ask(client.call("jobSubmit", { body, idempotencyKey: `${name}-${number}` }));
      const { id } = await until(`${name}'s job ${number} is accepted`, submit, { withinMs: WITHIN_MS });
      accepted.add(id);
      await until(
        `${id} has ended`,
        async () => (await ask(client.call("jobShow", { params: { jobId: id } })))?.finishedAt,
        { withinMs: WITHIN_MS },
      );
      ended++;
    }
  };
  const people = Promise.all(clients.map((client, index) => person(client, `person-${index}`)));
  people.catch(() => {});
  return {
    accepted,
    ended: () => ended,
    refusals,
    finish: async () => {
      stop.abort();
      await people;
    },
  };
}

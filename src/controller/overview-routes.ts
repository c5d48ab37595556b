// SPDX-License-Identifier: Apache-2.0
// The overview for people, once and live, and what ended of late. What is wrong comes first.

import type { Overview } from "../protocol/access-schema.ts";
import type { PeopleCaller } from "./access/credential.ts";
import { requireValid } from "./access/credential-store.ts";
import { attentionOf } from "./attention.ts";
import type { Context } from "./context.ts";
import type { Call, Handlers } from "./http/reply.ts";
import { countJobs, listBlocked, listThroughput } from "./jobs/count-store.ts";
import { countNodes } from "./nodes/node-counts.ts";
import { listNodes } from "./nodes/node-store.ts";

const THROUGHPUT_MINUTES = 60;
/** Between two events of a live overview, however much happens. */
const CHANGES_APART_MS = 250;
/** What no wake tells (a node that falls silent) is seen by then. */
const CHANGES_POLL_MS = 2_000;

export function overviewRoutes(context: Context): Handlers<"overview" | "changes" | "throughput"> {
  const { db } = context;
  return {
    overview: ({ caller }) => readOverview(context, caller),
    changes: (call) => Promise.resolve(changes(context, call)),
    throughput: async ({ caller, query }) => ({
      minutes: [...(await db.tenant(caller, (tx) => listThroughput(tx, query.minutes ?? THROUGHPUT_MINUTES)))],
    }),
  };
}

async function readOverview(context: Context, caller: PeopleCaller): Promise<Overview> {
  const { config, db } = context;
  const { nodes, jobs, blocked, now } = await db.tenant(caller, async (tx) => {
    await requireValid(tx, caller.credentialId);
    return {
      nodes: await listNodes(tx, config.heartbeatMs),
      jobs: await countJobs(tx),
      blocked: await listBlocked(tx),
      now: (await tx.one<{ now: Date }>("select now()", [])).now.getTime(),
    };
  });
  return {
    version: config.version,
    organisationName: caller.organisationName,
    jobs,
    blockedJobs: blocked.reduce((sum, lane) => sum + lane.jobs, 0),
    ...countNodes(nodes),
    attention: attentionOf(nodes, blocked, now),
  };
}

/** The overview at once, then whenever something was woken or the overview itself became another one. */
async function* changes(
  context: Context,
  { caller, signal }: Call<"changes">,
): AsyncGenerator<Overview, void, undefined> {
  const { clock, wakeups } = context;
  let sent = "";
  while (!signal.aborted) {
    using ticket = wakeups.ticket(`changes:${caller.organisationId}`);
    const overview = await readOverview(context, caller);
    const text = JSON.stringify(overview);
    if (text !== sent) yield overview;
    await clock.sleep(CHANGES_APART_MS, signal);
    await ticket.wait(CHANGES_POLL_MS, signal);
    // Something happened: told even when the numbers are the same, because a list may differ.
    sent = ticket.isWoken ? "" : text;
  }
}

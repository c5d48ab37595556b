// SPDX-License-Identifier: Apache-2.0
// What an agent says to the controller: hello, heartbeat, claims, starts, renewals, logs, endings. The organisation and the
// node come from the credential; a body can name neither.

import { architectures } from "../../protocol/enrol-schema.ts";
import type { ClaimedJob } from "../../protocol/agent-schema.ts";
import { JOB_RESULT_BYTES_MAX, LOG_CHUNK_BYTES_MAX } from "../../protocol/limits.ts";
import type { Tx } from "../../db/pool.ts";
import { codeOf, Failure } from "../../std/errors.ts";
import type { NodeCaller } from "../access/credential.ts";
import { requireValid } from "../access/credential-store.ts";
import type { Context } from "../context.ts";
import type { Call, Handlers } from "../http/reply.ts";
import { readWish, writeSceneReport } from "../nodes/scene-store.ts";
import { readEvidence, writeBoundary } from "../nodes/boundary-store.ts";
import { findCandidate } from "../nodes/candidate-store.ts";
import { beginSession, noteRival, readSession, writeHeartbeat } from "../nodes/node-store.ts";
import { type Claim, readClaimed, redeliver, takeClaimNumber } from "./claim-store.ts";
import { endAttempt } from "./ending-store.ts";
import { adoptLeases, explain, type Holder, renewLeases, startLeases } from "./lease-store.ts";
import { appendLog } from "./log-store.ts";
import { placeClaim } from "./place-claim.ts";
import { returnLeases } from "./return-store.ts";

type Names = "nodeHello" | "nodeHeartbeat" | "nodeClaim" | "nodeStarts" | "nodeRenewals" | "nodeEnding" | "nodeLog";

export function leaseRoutes(context: Context, nudgeLanes: () => void): Handlers<Names> {
  const { db, config } = context;
  return {
    nodeHello: async (call) => {
      const reply = await hello(context, call);
      nudgeLanes();
      return reply;
    },
    nodeHeartbeat: async ({ caller, body }) => {
      const release = await releaseFor(context, body.facts.arch);
      const beat = db.tenant(caller, async (tx) => {
        const { isDraining, isRotationAsked } = await holdSession(tx, caller, body.sessionId);
        await writeHeartbeat(tx, {
          organisationId: caller.organisationId,
          nodeId: caller.nodeId,
          facts: body.facts,
          nodeNow: body.now,
        });
        await writeBoundary(tx, caller.nodeId, body.boundary);
        await writeSceneReport(tx, caller.nodeId, body.scenes);
        return { drain: isDraining, rotate: isRotationAsked, wish: await readWish(tx, caller.nodeId), release };
      });
      // Somebody may be watching a switch.
      if (body.scenes !== undefined && (body.scenes.busy !== null || body.scenes.wish !== null))
        context.wakeups.wake(`changes:${caller.organisationId}`);
      return beat.catch(async (error: unknown) => {
        if (codeOf(error) === "session_superseded") await db.tenant(caller, (tx) => noteRival(tx, caller.nodeId));
        throw error;
      });
    },
    nodeClaim: (call) => claim(context, call),
    nodeStarts: async ({ caller, body }) => {
      const verdicts = await db.tenant(caller, async (tx) => {
        const { holder } = await holdSession(tx, caller, body.sessionId);
        return startLeases(tx, holder, body.starts, config.leaseMs);
      });
      for (const { jobId } of body.starts) context.wakeups.wake(`job:${jobId}`);
      context.wakeups.wake(`changes:${caller.organisationId}`);
      return { verdicts };
    },
    nodeRenewals: ({ caller, body }) =>
      db.tenant(caller, async (tx) => {
        const { holder, isDraining } = await holdSession(tx, caller, body.sessionId);
        return { ...(await renewLeases(tx, holder, body.leases, config.leaseMs)), drain: isDraining };
      }),
    nodeEnding: (call) => end(context, call),
    nodeLog: (call) => log(context, call),
  };
}

/** What this controller hands to nodes of that architecture. */
async function releaseFor({ enrolment, config }: Context, arch: string) {
  const known = architectures.find((each) => each === arch);
  const artefact = known === undefined ? undefined : await enrolment?.agent(known);
  return artefact === undefined ? null : { version: config.version, sha256: artefact.sha256 };
}

/** Refuses a session that is no longer the node's: its agent was started anew, or its credential is used twice. */
async function holdSession(
  tx: Tx,
  caller: NodeCaller,
  sessionId: string,
): Promise<{ holder: Holder; isDraining: boolean; isRotationAsked: boolean }> {
  const state = await readSession(tx, caller.nodeId, sessionId);
  if (state?.status === "retired") throw new Failure("node_retired", `node ${caller.nodeName} was retired`);
  if (state?.isCurrent !== true) {
    throw new Failure("session_superseded", `another agent has started with the credential of ${caller.nodeName}`);
  }
  const { organisationId, nodeId } = caller;
  const { status, isRotationAsked } = state;
  return { holder: { organisationId, nodeId, sessionId }, isDraining: status === "draining", isRotationAsked };
}

async function hello(context: Context, { caller, body }: Call<"nodeHello">) {
  const { config } = context;
  const { organisationId, nodeId } = caller;
  const sessionId = context.ids("nses");
  const { verdicts, said } = await context.db.tenant(caller, async (tx) => {
    const status = await beginSession(tx, nodeId, sessionId);
    if (status === undefined || status === "retired")
      throw new Failure("node_retired", `node ${caller.nodeName} was retired`);
    await writeHeartbeat(tx, { organisationId, nodeId, facts: body.facts, nodeNow: body.now });
    // Before this hello's own is written: a node that went back in time shall hear what it once said.
    const said = await readEvidence(tx, nodeId);
    await writeBoundary(tx, nodeId, body.boundary);
    const kept = await adoptLeases(tx, { organisationId, nodeId, sessionId }, body.holds, config.leaseMs);
    await returnLeases(tx, context, {
      nodeId,
      actor: nodeId,
      why: "the agent began anew without it",
      exceptSession: sessionId,
    });
    return { verdicts: kept, said };
  });
  context.wakeups.wake(`work:${organisationId}`);
  context.wakeups.wake(`changes:${organisationId}`);
  const { heartbeatMs, leaseMs, renewMs } = config;
  return { sessionId, nodeId, name: caller.nodeName, heartbeatMs, leaseMs, renewMs, ...said, verdicts };
}

/** Waits for work: woken at once by this controller, by a jittered poll for what another one queued. */
async function claim(context: Context, { caller, body, signal }: Call<"nodeClaim">) {
  const { clock, config, random } = context;
  const until = clock.monotonicMs() + body.waitMs;
  for (;;) {
    using ticket = context.wakeups.ticket(`work:${caller.organisationId}`);
    // A caller that has hung up gets nothing: what it would get would have to time out first.
    if (signal.aborted) return { jobs: [], drain: false };
    const { jobs, drain, againInMs } = await claimOnce(context, caller, {
      ...body,
      organisationId: caller.organisationId,
      nodeId: caller.nodeId,
      startWithinMs: config.startWithinMs,
    });
    const leftMs = until - clock.monotonicMs();
    if (jobs.length > 0) context.wakeups.wake(`changes:${caller.organisationId}`);
    if (jobs.length > 0 || leftMs <= 0) return { jobs, drain };
    const pollMs = config.pollMs * (0.75 + random.fraction() / 2);
    await ticket.wait(Math.min(leftMs, pollMs, againInMs ?? pollMs), signal);
  }
}

type ClaimedOnce = { readonly jobs: ClaimedJob[]; readonly drain: boolean; readonly againInMs: number | null };

async function claimOnce(context: Context, caller: NodeCaller, asked: Claim): Promise<ClaimedOnce> {
  const { heartbeatMs } = context.config;
  return context.db.tenant(caller, async (tx) => {
    const { isDraining } = await holdSession(tx, caller, asked.sessionId);
    await requireValid(tx, caller.credentialId);
    const number = await takeClaimNumber(tx, asked);
    const nothing = { jobs: [], drain: isDraining, againInMs: null };
    // A request that was overtaken by a later claim of its session: nobody waits for its answer.
    if (number === "old") return nothing;
    const again = number === "new" ? [] : await redeliver(tx, asked);
    if (again.length > 0) return { ...nothing, jobs: await readClaimed(tx, again, asked.startWithinMs) };
    if (isDraining) return nothing;
    // Read under the row's lock: a drain that was committed while this claim waited for it counts.
    const node = await findCandidate(tx, heartbeatMs, caller.nodeId);
    if (node?.status !== "active" || node.refuses !== null) return nothing;
    const { ids, againInMs } = await placeClaim(tx, asked, node, heartbeatMs);
    return { jobs: await readClaimed(tx, ids, asked.startWithinMs), drain: false, againInMs };
  });
}

async function end(context: Context, { caller, body }: Call<"nodeEnding">) {
  const { ending, sessionId } = body;
  if (ending.result !== undefined && Buffer.byteLength(JSON.stringify(ending.result)) > JOB_RESULT_BYTES_MAX) {
    const problem = `is larger than ${JOB_RESULT_BYTES_MAX} bytes as JSON`;
    throw new Failure("invalid_request", `/ending/result ${problem}`, {
      details: [{ place: "/ending/result", problem }],
    });
  }
  const verdict = await context.db.tenant(caller, async (tx) => {
    const { holder } = await holdSession(tx, caller, sessionId);
    return endAttempt(tx, context, holder, ending);
  });
  context.wakeups.wake(`job:${ending.jobId}`);
  context.wakeups.wake(`work:${caller.organisationId}`);
  context.wakeups.wake(`changes:${caller.organisationId}`);
  return verdict;
}

async function log(context: Context, { caller, body }: Call<"nodeLog">) {
  const { sessionId, jobId, epoch, stream, offset } = body;
  const lease = { jobId, epoch };
  const data = Buffer.from(body.data, "base64");
  if (data.length > LOG_CHUNK_BYTES_MAX) {
    const problem = `holds more than ${LOG_CHUNK_BYTES_MAX} bytes`;
    throw new Failure("invalid_request", `/data ${problem}`, { details: [{ place: "/data", problem }] });
  }
  const answer = await context.db.tenant(caller, async (tx) => {
    const { holder } = await holdSession(tx, caller, sessionId);
    const appended = await appendLog(tx, holder, { ...lease, stream, offset, data });
    if (appended !== undefined) return { ...lease, ...appended };
    const [verdict] = await explain(tx, holder, [lease]);
    return verdict ?? { ...lease, verdict: "unknown" as const };
  });
  context.wakeups.wake(`job:${jobId}`);
  return answer;
}

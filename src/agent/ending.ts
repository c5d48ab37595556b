// SPDX-License-Identifier: Apache-2.0
// Tells the controller how an attempt ended, until it has answered. Rule: a result that is refused never keeps a job from
// ending: it is sent again without it.

import type { EndingReport, VerdictKind } from "../protocol/agent-schema.ts";
import { adjudicate } from "../boundary/boundary.ts";
import { assert } from "../std/assert.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import type { Adopted } from "../launcher/launcher.ts";
import type { Link } from "./link.ts";
import { notStarted, seen, type Seen } from "./outcome.ts";

type EndingOptions = {
  readonly link: Link;
  readonly sessionId: string;
  readonly report: EndingReport;
  readonly signal: AbortSignal;
};

/** The verdict. Throws when the signal aborted first, or when even the bare report is refused. */
export async function sendEnding({ link, sessionId, report, signal }: EndingOptions): Promise<VerdictKind> {
  const send = async (ending: EndingReport): Promise<VerdictKind> =>
    (await link.call("nodeEnding", { body: { sessionId, ending } }, { signal })).verdict;
  try {
    return await send(report);
  } catch (error) {
    if (!["invalid_request", "payload_too_large"].includes(codeOf(error))) throw error;
    const { result: _, ...bare } = report;
    return send({ ...bare, message: `the report of the end was refused: ${messageOf(error)}`.slice(0, 1024) });
  }
}

/** What became of a launch of an earlier agent of which nothing runs any more: as the boundary rules, in words for people. */
export function endingOfAdopted(found: Exclude<Adopted, { kind: "alive" | "remains" }>): Seen {
  if (found.kind === "ended") return seen(found.exit);
  const adjudged = adjudicate("survivors" in found ? { ...found, survivors: [] } : found);
  if (adjudged.kind === "not-started") return notStarted("the agent ended before the command was started");
  assert(adjudged.kind === "interrupted", "what does not run and has no exit file was interrupted");
  if (found.kind === "damaged") return interrupted(found.problem);
  const isRestart = found.kind === "interrupted" && found.reason === "other-boot";
  return interrupted(isRestart ? "the machine was restarted" : adjudged.why);
}

export function interrupted(message: string): Seen {
  return { outcome: { kind: "interrupted", message }, wasAsked: true };
}

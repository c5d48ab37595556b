// SPDX-License-Identifier: Apache-2.0
// States by word and shape; the colour only repeats them.

import type { Job } from "../../../src/protocol/job-schema.ts";
import type { Node } from "../../../src/protocol/node-schema.ts";

export type Tone = "good" | "busy" | "wait" | "warn" | "bad" | "gone";

const shapes: Readonly<Record<Tone, string>> = {
  good: "●",
  busy: "◐",
  wait: "○",
  warn: "▲",
  bad: "■",
  gone: "–",
};

export function State({ tone, text }: { readonly tone: Tone; readonly text: string }) {
  return (
    <span className={`state ${tone}`}>
      <span aria-hidden="true">{shapes[tone]}</span> {text}
    </span>
  );
}

const jobTones: Readonly<Record<Job["state"], Tone>> = {
  scheduled: "wait",
  queued: "wait",
  leased: "busy",
  running: "busy",
  succeeded: "good",
  failed: "bad",
  cancelled: "gone",
  dead: "bad",
};

export function JobState({ job }: { readonly job: Pick<Job, "state" | "blocked" | "cancelRequested"> }) {
  if (job.blocked !== null) return <State tone="warn" text={`${job.state}, blocked`} />;
  return (
    <State
      tone={jobTones[job.state]}
      text={job.cancelRequested && isOpen(job) ? `${job.state}, cancelling` : job.state}
    />
  );
}

function isOpen(job: Pick<Job, "state">): boolean {
  return job.state === "leased" || job.state === "running";
}

export function NodeState({ node }: { readonly node: Pick<Node, "status" | "online" | "leftAt"> }) {
  if (node.status === "retired") return <State tone="gone" text="retired" />;
  if (node.leftAt !== null) return <State tone="gone" text="uninstalled" />;
  if (!node.online) return <State tone="bad" text={node.status === "draining" ? "offline, draining" : "offline"} />;
  return node.status === "draining" ? <State tone="warn" text="draining" /> : <State tone="good" text="online" />;
}

// SPDX-License-Identifier: Apache-2.0
// What a person should look at, pure: worst first, each with what to do. Empty when all is well.

import type { Attention } from "../protocol/access-schema.ts";
import { deviceAdvice } from "../protocol/device-advice.ts";
import { CLOCK_OFFSET_WARN_MS, RIVAL_SHOWN_MS } from "../protocol/node.ts";
import type { Node } from "../protocol/node-schema.ts";

export type Blocked = { readonly reason: string; readonly jobs: number };

export function attentionOf(nodes: readonly Node[], blocked: readonly Blocked[], now: number): Attention[] {
  const items = [
    ...nodes.filter((node) => node.status !== "retired").flatMap((node) => ofNode(node, now)),
    ...blocked.map(ofLane),
  ];
  return items.toSorted((a, b) => Number(a.level === "warning") - Number(b.level === "warning"));
}

function ofNode(node: Node, now: number): Attention[] {
  const about = (level: Attention["level"], text: string, advice: string): Attention => ({
    level,
    text,
    advice,
    nodeId: node.id,
    jobState: null,
  });
  const found: Attention[] = [];
  if (node.rivalAt !== null && now - Date.parse(node.rivalAt) < RIVAL_SHOWN_MS) {
    found.push(
      about(
        "error",
        `two agents use the credential of node ${node.name}`,
        "Stop the copy, or pair it as a node of its own; if you do not know it, retire the node.",
      ),
    );
  }
  if (node.online && node.boundary !== null && node.boundary.state !== "trusted") {
    const advice =
      node.boundary.state === "untrusted"
        ? "Have its disk looked at; on the node, holdfast boundary show says which, and holdfast boundary reset lets it run jobs again."
        : "It takes jobs again by itself as soon as that is mended.";
    found.push(
      about("error", `node ${node.name} refuses every job: ${node.boundary.why ?? node.boundary.state}`, advice),
    );
  }
  if (!node.online) found.push(about(...whyAway(node)));
  const offsetMs = node.clockOffsetMs ?? 0;
  if (node.online && Math.abs(offsetMs) > CLOCK_OFFSET_WARN_MS) {
    const offset = `${Math.abs(offsetMs / 1000).toFixed(1)} s ${offsetMs > 0 ? "ahead" : "behind"}`;
    found.push(
      about(
        "warning",
        `the clock of node ${node.name} is ${offset}`,
        "Set its clock, or turn NTP on: timedatectl set-ntp true",
      ),
    );
  }
  for (const device of node.online ? (node.facts?.devices ?? []) : []) {
    if (device.kind !== "gpu" || device.state === "ok" || device.state === "memory-unknown") continue;
    const why = device.reason === null ? device.state : `${device.state}, ${device.reason}`;
    found.push(about("warning", `${device.name} of node ${node.name} cannot be used: ${why}`, deviceAdvice(device)));
  }
  return found;
}

function whyAway({ name, leftAt, lastHeartbeatAt }: Node): readonly [Attention["level"], string, string] {
  if (leftAt !== null) {
    const advice = `Retire it; or put a machine in its place: holdfast node pair ${name} --take-over`;
    return ["warning", `node ${name} was uninstalled`, advice];
  }
  if (lastHeartbeatAt === null) return ["warning", `node ${name} was never seen`, "Start its agent: holdfast agent"];
  return [
    "error",
    `node ${name} is offline, last seen ${lastHeartbeatAt}`,
    "Look at the machine and its agent; run holdfast doctor there. Its jobs go to other nodes after their leases.",
  ];
}

function ofLane({ reason, jobs }: Blocked): Attention {
  return {
    level: "warning",
    text: `${jobs} ${jobs === 1 ? "job is" : "jobs are"} blocked: ${reason}`,
    advice: "They run as soon as a node that fits is online; nothing is lost meanwhile.",
    nodeId: null,
    jobState: "queued",
  };
}

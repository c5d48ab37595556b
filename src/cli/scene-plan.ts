// SPDX-License-Identifier: Apache-2.0
// A plan as a person reads it: what stays, what happens in which order, and what memory it takes.

import type { Plan } from "../scenes/plan.ts";
import { sizeText } from "../std/units.ts";
import { visible } from "./table.ts";

export function planText(plan: Plan): string {
  const { scene, from, keep, steps, memory, problems, isMakeBeforeBreak } = plan;
  const lines = [`${from ?? "nothing"} → ${scene}`];
  for (const model of keep) lines.push(`  keep   ${model}`);
  for (const step of steps)
    switch (step.kind) {
      case "forget":
        lines.push(`  forget ${step.model}, which died`);
        break;
      case "hold":
        lines.push(`  hold   new connections: ${step.why}`);
        break;
      case "flip":
        lines.push("  flip   the gateways to it");
        break;
      default:
        lines.push(`  ${step.kind.padEnd(6)} ${step.model}`);
    }
  if (steps.length === 0) lines.push("  nothing is to be done");
  if (isMakeBeforeBreak) lines.push("The target is proved before anything is stopped.");
  const unknown = memory.unknown.length === 0 ? "" : `; nobody knows what ${memory.unknown.join(" and ")} need`;
  lines.push(
    `Memory: ${sizeText(memory.availableBytes)} available, ${sizeText(memory.freedBytes)} come back, ${sizeText(memory.neededBytes)} needed, floor ${sizeText(memory.floorBytes)}${unknown}`,
  );
  for (const problem of problems) lines.push(`Refused: ${visible(problem)}`);
  return `${lines.join("\n")}\n`;
}

// SPDX-License-Identifier: Apache-2.0
// job why: why a job is where it is, node by node.

import type { Command } from "commander";
import type { JobWhy, WhyNode } from "../protocol/placement-schema.ts";
import { gibibytes } from "../protocol/placement.ts";
import { example, printing, type Tree } from "./command.ts";
import { fields, table, visible } from "./table.ts";
import { connect, printJson, type Terminal } from "./terminal.ts";
import { parseId } from "./units.ts";

export function addWhy(job: Command, { terminal }: Tree): void {
  const why = printing(job.command("why"))
    .argument("<id>", "of the job", parseId("job", "job"))
    .description("Say why a job is where it is: what each node says, its position, who holds what it waits for")
    .action(async (jobId: string, { json }) => {
      const found = await connect(terminal).call("jobWhy", { params: { jobId } });
      if (json === true) return printJson(terminal, found);
      printWhy(terminal, found);
    });
  example(why, "holdfast job why job_01j…", "holdfast job why --json job_01j…");
}

function printWhy(terminal: Terminal, why: JobWhy): void {
  terminal.stdout.write(
    fields([
      ["job", why.jobId],
      ["answer", visible(why.text)],
      ["before it", why.position === null ? null : `${why.positionIsLeast ? "at least " : ""}${why.position}`],
      ["room kept", why.reservedOn?.name ?? null],
    ]),
  );
  if (why.nodes.length > 0) {
    const rows = why.nodes.map((node) => [node.name, stateOf(node), node.verdict, nowOf(node), visible(node.text)]);
    terminal.stdout.write(`\n${table(["NODE", "STATE", "VERDICT", "NOW", "WHY"], rows)}`);
  }
  if (why.holders.length > 0) {
    const rows = why.holders.map((holder) => [holder.nodeName, holder.jobId, holder.state, bytesText(holder.bytes)]);
    terminal.stdout.write(`\n${table(["NODE", "HELD BY", "STATE", "ASKED FOR"], rows)}`);
  }
}

function stateOf({ status, online }: WhyNode): string {
  if (status !== "active") return status;
  return online ? "online" : "offline";
}

function nowOf({ path, startsNow }: WhyNode): string {
  if (path === null) return "no";
  return startsNow ? `${path} path` : "not now";
}

function bytesText(bytes: number): string {
  return bytes === 0 ? "a slot" : gibibytes(bytes);
}

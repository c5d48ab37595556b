// SPDX-License-Identifier: Apache-2.0
// node pair | list | show | drain | activate | rotate | retire. A node is given by its name or its id.

import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import { deviceAdvice } from "../protocol/device-advice.ts";
import { CLOCK_OFFSET_WARN_MS } from "../protocol/node.ts";
import type { Device, Node } from "../protocol/node-schema.ts";
import { gibibytes } from "../protocol/placement.ts";
import { Failure } from "../std/errors.ts";
import { addNodeDoctor } from "./doctor-command.ts";
import { addPair } from "./pair-command.ts";
import { example, printing, type Tree } from "./command.ts";
import { ago, fields, table, visible } from "./table.ts";
import { colours, connect, printJson, type Terminal } from "./terminal.ts";

export function addNodeCommands(program: Command, tree: Tree): void {
  const { terminal } = tree;
  const node = program.command("node").description("Machines that run jobs");
  example(node, "holdfast node list", "holdfast node drain anna");
  addPair(node, tree);
  addNodeDoctor(node, tree);

  const list = printing(node.command("list"))
    .description("List nodes")
    .action(async ({ json }) => {
      const { items } = await connect(terminal).call("nodeList", {});
      if (json === true) return printJson(terminal, items);
      terminal.stdout.write(items.length === 0 ? "No node yet: holdfast node pair NAME\n" : nodeTable(terminal, items));
    });
  example(list, "holdfast node list");

  const show = printing(node.command("show"))
    .argument("<node>", "name or id")
    .description("Show one node with its devices")
    .action(async (wanted: string, { json }) => {
      const found = await findNode(connect(terminal), wanted);
      if (json === true) return printJson(terminal, found);
      printNode(terminal, found);
    });
  example(show, "holdfast node show anna");

  const verbs = [
    ["drain", "nodeDrain", "Let it finish what it holds and claim nothing"],
    ["activate", "nodeActivate", "Undo a drain"],
    ["rotate", "nodeRotate", "Replace its credential; the old one works until the new one is used"],
    ["retire", "nodeRetire", "Revoke its credential for good; its jobs go back to the queue"],
  ] as const;
  for (const [verb, route, description] of verbs) {
    const command = printing(node.command(verb))
      .argument("<node>", "name or id")
      .description(description)
      .action(async (wanted: string, { json }) => {
        const client = connect(terminal);
        const changed = await client.call(route, { params: { nodeId: (await findNode(client, wanted)).id } });
        if (json === true) return printJson(terminal, changed);
        const more =
          verb === "rotate"
            ? "; its agent replaces the credential with its next heartbeat"
            : changed.running > 0
              ? `; ${changed.running} jobs still run there`
              : "";
        terminal.stdout.write(`${changed.name} is ${changed.status}${more}.\n`);
      });
    example(command, `holdfast node ${verb} anna`);
  }
}

/** By id, or by the name of a node that is not retired. */
export async function findNode(client: Client, wanted: string): Promise<Node> {
  const { items } = await client.call("nodeList", {});
  const found = items.find((node) => node.id === wanted) ?? items.find((node) => node.name === wanted);
  if (found !== undefined) return found;
  const names = items.filter((node) => node.status !== "retired").map((node) => node.name);
  throw new Failure(
    "not_found",
    `there is no node ${wanted}${names.length === 0 ? "" : `; there are ${names.slice(0, 10).join(", ")}`}`,
  );
}

export function nodeTable(terminal: Terminal, nodes: readonly Node[]): string {
  const now = terminal.clock.now();
  return table(
    ["NODE", "STATE", "JOBS", "CPUS", "MEMORY", "GPU", "HEARTBEAT"],
    nodes.map((node) => [
      node.name,
      stateText(terminal, node),
      node.facts === null ? String(node.running) : `${node.running}/${node.facts.slots}`,
      String(node.facts?.cpuCount ?? "?"),
      node.facts === null ? "?" : gibibytes(node.facts.memoryTotalBytes),
      gpuText(node.facts?.devices ?? []),
      ago(node.lastHeartbeatAt, now),
    ]),
  );
}

function stateText(terminal: Terminal, node: Node): string {
  const colour = colours(terminal);
  if (node.status === "retired") return colour.dim("retired");
  if (!node.online) return colour.red("offline");
  return node.status === "draining" ? colour.yellow("draining") : colour.green("online");
}

function gpuText(devices: readonly Device[]): string {
  const gpus = devices.filter((device) => device.kind === "gpu");
  return gpus.length === 0
    ? "none"
    : gpus.map((gpu) => `${visible(gpu.name)}${gpu.state === "ok" ? "" : ` (${gpu.state})`}`).join(", ");
}

/** What it has and what of that is free; a shared memory is the machine's, up to its driver's cap. */
export function gpuMemory(gpu: Device): string {
  const { memoryBytes, memoryAvailableBytes, memoryCapBytes, unified } = gpu;
  if (memoryBytes === null && unified === true)
    return memoryCapBytes === null ? "shared" : `shared, at most ${gibibytes(memoryCapBytes)}`;
  if (memoryBytes === null) return "unknown";
  return `${gibibytes(memoryBytes)}${memoryAvailableBytes === null ? "" : `, ${gibibytes(memoryAvailableBytes)} free`}`;
}

function printNode(terminal: Terminal, node: Node): void {
  const now = terminal.clock.now();
  const { facts } = node;
  const offsetMs = node.clockOffsetMs ?? 0;
  const clock =
    Math.abs(offsetMs) > CLOCK_OFFSET_WARN_MS ? `${(offsetMs / 1000).toFixed(1)} s off: set it` : `${offsetMs} ms off`;
  terminal.stdout.write(
    fields([
      ["node", node.name],
      ["id", node.id],
      [
        "state",
        `${stateText(terminal, node)}${node.status === "draining" ? " (finishes what it holds, claims nothing)" : ""}`,
      ],
      ["heartbeat", ago(node.lastHeartbeatAt, now)],
      ["clock", node.clockOffsetMs === null ? null : clock],
      ["jobs", `${node.running}${facts === null ? "" : ` of ${facts.slots} slots`}`],
      ["machine", facts === null ? null : visible(`${facts.hostname}, ${facts.arch}, Linux ${facts.kernel}`)],
      ["processor", facts === null ? null : visible(`${facts.cpuCount} × ${facts.cpuName}`)],
      [
        "memory",
        facts === null
          ? null
          : `${gibibytes(facts.memoryTotalBytes)}, ${gibibytes(facts.memoryAvailableBytes)} available`,
      ],
      ["agent", visible(facts?.version ?? "")],
      [
        "session",
        node.session === null
          ? null
          : `${node.session.id}${node.session.startedAt === null ? "" : `, since ${ago(node.session.startedAt, now)}`}`,
      ],
      ["credential", node.rotation === null ? null : `a new one is ${node.rotation}`],
      ["alarm", node.rivalAt === null ? null : `a second agent used this credential ${ago(node.rivalAt, now)}`],
    ]),
  );
  const gpus = (facts?.devices ?? []).filter((device) => device.kind === "gpu");
  if (gpus.length === 0) return;
  terminal.stdout.write("\n");
  terminal.stdout.write(
    table(
      ["GPU", "ADDRESS", "MEMORY", "DRIVER", "STATE"],
      gpus.map((gpu) => [
        visible(gpu.name),
        visible(gpu.address ?? "?"),
        gpuMemory(gpu),
        visible(gpu.driver ?? "?"),
        visible(gpu.reason === null ? gpu.state : `${gpu.state}: ${gpu.reason}`),
      ]),
    ),
  );
  for (const advice of new Set(gpus.map(deviceAdvice).filter((text) => text !== "")))
    terminal.stdout.write(`${advice}\n`);
}

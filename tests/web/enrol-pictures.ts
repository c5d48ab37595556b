// SPDX-License-Identifier: Apache-2.0
// Pictures of a machine that is added, step by step, and of a node whose devices and boundary are in trouble, for
// screenshots-main.ts.

import path from "node:path";
import type { TestContext } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import type { Enrolment } from "../../src/controller/enrolment.ts";
import type { Device } from "../../src/protocol/node-schema.ts";
import { plainEnrolment } from "../kit/enrolment.ts";
import type { NodeDouble } from "../kit/node-double.ts";
import { machineWith } from "./enrol-machine.ts";
import { createWebWorld, type WebWorld } from "./kit.ts";

const GIB = 2 ** 30;
/** As long as names may be. */
const LONG = "anna-with-a-name-as-long-as-names-may-be-0123456789-0123456789ab";

const PIN = "sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE=";

const card: Device = {
  kind: "gpu",
  vendor: "NVIDIA",
  name: "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
  address: "0000:01:00.0",
  memoryBytes: 96 * GIB,
  memoryAvailableBytes: 30.5 * GIB,
  memoryCapBytes: null,
  unified: false,
  driver: "580.95.05",
  state: "ok",
  reason: null,
};
const devices: Device[] = [
  card,
  {
    ...card,
    address: "0000:02:00.0",
    state: "lost",
    reason: "it was at 0000:02:00.0 and is gone from the bus",
    memoryBytes: null,
    memoryAvailableBytes: null,
  },
  {
    ...card,
    name: "AMD Radeon 8060S",
    vendor: "AMD",
    address: "0000:c5:00.0",
    memoryBytes: null,
    memoryCapBytes: 96 * GIB,
    unified: true,
    driver: "amdgpu",
    reason: "shares the memory of the machine",
  },
  {
    ...card,
    address: "0000:03:00.0",
    state: "unreadable",
    reason:
      "holdfast may not open /dev/nvidia2 (mode 0660, group video): it lacks the group video; usermod -aG video holdfast, then restart the agent",
  },
];

/** A node that tells devices in every trouble, refuses every job, and whose credential is being replaced. */
async function troubled(world: WebWorld): Promise<NodeDouble> {
  const node = await world.node("carla", { devices, memoryTotalBytes: 128 * GIB, memoryAvailableBytes: 41 * GIB });
  await node.heartbeat();
  await world.admin.call("nodeRotate", { params: { nodeId: node.nodeId } });
  await world.sql("update app.node set boundary_state = 'untrusted', boundary_why = $2 where id = $1", [
    node.nodeId,
    "slot /disk2/holdfast: its digest does not fit what this node acknowledged as 4711",
  ]);
  return node;
}

type Shapes = Readonly<Record<string, BrowserContextOptions>>;

export async function shootEnrolment(t: TestContext, folder: string, shapes: Shapes): Promise<void> {
  const enrolment: Enrolment = { ...(await plainEnrolment(t)), trust: "fleet", pin: () => PIN };
  for (const [shape, options] of Object.entries(shapes)) {
    const world = await createWebWorld(t, { enrolment, publicUrl: "https://box.lan:7440" });
    const trouble = await troubled(world);
    const page = await world.signedIn("/nodes", undefined, options);
    const shoot = (name: string) =>
      page.screenshot({ path: path.join(folder, `${name}-${shape}.png`), fullPage: name.includes("node") });
    await shootJoining(page, world, { shoot, name: shape === "phone" ? LONG : "anna" });
    await trouble.heartbeat();
    await page.goto(`/nodes/${trouble.nodeId}`);
    await page.getByText("refuses every job").waitFor();
    await page.getByRole("table", { name: "Devices" }).waitFor();
    await shoot("enrol-node");
    await page.getByRole("button", { name: "Take over…" }).click();
    await page.getByText("is online now").waitFor();
    await shoot("enrol-take-over");
    await page.context().close();
  }
}

/** So many seconds ago: phases that took as long as they do. */
async function tellPhases(world: WebWorld, name: string): Promise<void> {
  const at = (ago: number): string => new Date(Date.now() - ago * 1000).toISOString();
  const phases = [
    { phase: "fetch", outcome: "begun", detail: "", at: at(17) },
    { phase: "fetch", outcome: "done", detail: "agent 0.1.0 for x64, system layout, on anna.lan", at: at(8.6) },
    { phase: "install", outcome: "begun", detail: "", at: at(8.6) },
    { phase: "install", outcome: "done", detail: "/opt/holdfast", at: at(5.2) },
    { phase: "pair", outcome: "begun", detail: "", at: at(3) },
  ];
  await world.sql("update app.pairing_code set phases = $2 where name = $1", [name, JSON.stringify(phases)]);
}

type Joining = { readonly name: string; readonly shoot: (name: string) => Promise<unknown> };

async function shootJoining(page: Page, world: WebWorld, { name, shoot }: Joining): Promise<void> {
  const outlook = page.locator(".outlook");
  await page.getByRole("button", { name: "Add a machine" }).click();
  await page.getByLabel("Name of the node").fill("carla");
  await page.getByRole("button", { name: "Make a code" }).click();
  await page.getByRole("button", { name: "Take carla over…" }).waitFor();
  await shoot("enrol-taken");
  await page.getByLabel("Name of the node").fill(name);
  await page.getByRole("button", { name: "Make a code" }).click();
  await page.getByText("nothing was reported yet").waitFor();
  await shoot("enrol-code");
  await page.getByText("Read the script first").click();
  await shoot("enrol-read");
  await page.getByText("Read the script first").click();
  const { report, pair } = machineWith(world.url, (await page.locator(".secret code").textContent()) ?? "");
  await tellPhases(world, name);
  await outlook.getByText("under way").waitFor();
  await outlook.scrollIntoViewIfNeeded();
  await shoot("enrol-going");
  await report(
    "pair",
    "failed",
    "clock_off: SSL certificate problem: certificate is not yet valid: is the clock of this machine right?",
  );
  await outlook.getByText("pair failed").waitFor();
  await page.getByRole("button", { name: "Close" }).scrollIntoViewIfNeeded();
  await shoot("enrol-failed");
  await page.keyboard.press("Escape");
  await page.getByRole("table", { name: "Pairings under way" }).waitFor();
  await shoot("enrol-nodes");
  await page.getByRole("button", { name: `Show how far ${name} is` }).click();
  for (const phase of ["fetch", "install", "pair", "start", "prove"] as const) {
    await report(phase, "begun");
    await report(phase, "done");
  }
  const node = await pair();
  await node.hello();
  await outlook.getByText("is online").waitFor();
  await shoot("enrol-online");
}

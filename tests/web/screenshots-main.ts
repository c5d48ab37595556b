// SPDX-License-Identifier: Apache-2.0
// Writes a picture of every page, in light, in dark and as wide as a phone, for a person to look at.
// Usage: node tests/web/screenshots-main.ts FOLDER

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import type { NodeDouble } from "../kit/node-double.ts";
import { shootEnrolment } from "./enrol-pictures.ts";
import { createWebWorld, linkFor, startNext, type WebWorld } from "./kit.ts";
import { shootScenes } from "./scene-pictures.ts";

const GIB = 2 ** 30;
const shapes: Readonly<Record<string, BrowserContextOptions>> = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 740 }, colorScheme: "dark", isMobile: true, hasTouch: true },
};

const submitter =
  (world: WebWorld) =>
  (command: string[], more: object = {}) =>
    world.admin.call("jobSubmit", { body: { command, ...more } });

async function endTen(t: TestContext, world: WebWorld, anna: NodeDouble): Promise<void> {
  const submit = submitter(world);
  for (const [index, exitCode] of [0, 0, 0, 1, 0, 0, 2, 0, 0, 0].entries()) {
    await submit(["python3", "evaluate.py", "--shard", String(index)], { project: "night-runs" });
    const { jobId, epoch } = await startNext(t, anna);
    await anna.end(jobId, epoch, { exitCode, result: { accuracy: 0.93, tokens: "9007199254740993" } });
  }
}

const gpu = {
  kind: "gpu" as const,
  vendor: "NVIDIA",
  name: "RTX 6000 Ada",
  address: "0000:01:00.0",
  memoryBytes: 48 * GIB,
  memoryAvailableBytes: 30 * GIB,
  memoryCapBytes: null,
  unified: false,
  driver: "550.54",
  state: "ok" as const,
  reason: null,
};

async function furnish(t: TestContext, world: WebWorld) {
  const anna = await world.node("anna", {
    memoryTotalBytes: 128 * GIB,
    memoryAvailableBytes: 40 * GIB,
    slots: 4,
    cpuCount: 32,
    devices: [gpu, { ...gpu, state: "tool-hung", reason: "nvidia-smi did not answer within 5 s", memoryBytes: null }],
  });
  await world.node("berta", { arch: "arm64", slots: 2 });
  await world.sql(
    "update app.node_heartbeat set at = now() - interval '20 minutes' where node_id = (select id from app.node where name = 'berta')",
  );
  await world.admin.call("modelAdd", {
    body: {
      name: "qwen3-32b",
      needs: { memoryBytes: 40 * GIB, arch: "x64" },
      marker: "qwen3-32b-q8 build 4711",
      description: "general",
    },
  });
  await world.admin.call("projectAdd", { body: { name: "night-runs", description: "what runs while nobody looks" } });
  await world.admin.call("userCreate", { body: { name: "bea", role: "member" } });
  await world.admin.call("userCreate", { body: { name: "carl-with-a-long-name-that-goes-on", role: "admin" } });
  await endTen(t, world, anna);
  const submit = submitter(world);
  await world.sql(
    "update app.job set finished_at = finished_at - (random() * interval '50 minutes') where finished_at is not null",
  );
  await submit(["train.sh"], { requires: { memoryBytes: 999 * GIB } });
  const shown = await submit(
    ["sh", "-c", "for epoch in 1 2 3; do python3 train.py --epoch $epoch --output /srv/runs/night/2026-12-01; done"],
    {
      environment: { CUDA_VISIBLE_DEVICES: "0" },
      labels: { team: "vision" },
      project: "night-runs",
      input: { shards: [1, 2] },
      timeLimitMs: 7_200_000,
    },
  );
  const { jobId, epoch } = await startNext(t, anna);
  const lines = Array.from({ length: 400 }, (_, step) => `step ${step} loss ${(2 / (step + 1)).toFixed(4)}`).join("\n");
  await anna.log(jobId, epoch, { offset: 0, text: `${lines}\n` });
  await anna.log(jobId, epoch, {
    offset: 0,
    text: "warning: \u001b[31mlearning rate is high\u001b[0m <img src=x onerror=alert(1)>\n",
    stream: "stderr",
  });
  await submit(["sleep", "60"]);
  const timer = setInterval(
    () =>
      void anna
        .heartbeat()
        .then(() => anna.renew(jobId, epoch))
        .catch(() => {}),
    500,
  );
  return { jobId: shown.id, nodeId: anna.nodeId, stop: () => clearInterval(timer) };
}

function folderOf(): string {
  const folder = process.argv[2];
  assert.ok(folder !== undefined, "usage: node tests/web/screenshots-main.ts FOLDER");
  fs.mkdirSync(folder, { recursive: true });
  return folder;
}

test("pictures of the scenes of a node", (t) => shootScenes(t, folderOf(), shapes));

test("pictures of a machine that is added, and of a node in trouble", (t) => shootEnrolment(t, folderOf(), shapes));

test("pictures of every page", async (t) => {
  const folder = folderOf();
  const empty = await createWebWorld(t);
  const emptyPage = await empty.signedIn("/", undefined, shapes["light"]);
  await emptyPage.waitForLoadState("load");
  await emptyPage.getByText("No node yet").waitFor();
  await emptyPage.screenshot({ path: path.join(folder, "empty-light.png"), fullPage: true });
  const world = await createWebWorld(t);
  const { jobId, nodeId, stop } = await furnish(t, world);
  const addresses = {
    overview: "/",
    nodes: "/nodes",
    node: `/nodes/${nodeId}`,
    jobs: "/jobs",
    job: `/jobs/${jobId}`,
    submit: "/jobs/new",
    models: "/models",
    projects: "/projects",
    people: "/people",
    credentials: "/credentials",
    account: "/account",
    audit: "/audit",
  };
  for (const [shape, options] of Object.entries(shapes)) {
    const shoot = (page: Page, name: string) =>
      page.screenshot({ path: path.join(folder, `${name}-${shape}.png`), fullPage: true });
    const outside = await world.open(options);
    await outside.goto("/sign-in");
    await outside.getByRole("button", { name: "Sign in" }).waitFor();
    await shoot(outside, "sign-in");
    const page = await world.signedIn("/", undefined, options);
    for (const [name, address] of Object.entries(addresses)) {
      await page.goto(address);
      await page.locator("main h1").waitFor();
      await page.locator(".loading").first().waitFor({ state: "detached" });
      if (name === "job") await page.getByText("step 399").waitFor();
      await page.evaluate(
        "document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))",
      );
      await shoot(page, name);
      const width = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
      if (Number(width) > 0) process.stdout.write(`${name} ${shape}: ${String(width)} px too wide\n`);
    }
    await page.context().close();
  }
  stop();
  await linkFor(world.admin);
});

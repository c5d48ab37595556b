// SPDX-License-Identifier: Apache-2.0
// Pictures of a node's scenes, for screenshots-main.ts: a switch under way, what the node refused, a dialog, a node without any.

import fs from "node:fs";
import path from "node:path";
import type { TestContext } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { stringify } from "yaml";
import { startNode } from "../agent/kit.ts";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { stub } from "../scenes/kit.ts";
import { createWebWorld, type WebWorld } from "./kit.ts";
import { longScenes, tellScenes } from "./scene-reports.ts";

const LOAD_MS = 20_000;

async function writeScenes(root: string): Promise<void> {
  const ports = [await freePort(), await freePort(), await freePort(), await freePort(), await freePort()] as const;
  const file = {
    version: 1,
    floor: "2GiB",
    gateways: { chat: { listen: `127.0.0.1:${ports[3]}` } },
    models: {
      ...stub("qwen3-32b", { port: ports[0], holdMb: 300 }),
      ...stub("bge-m3", { port: ports[1], holdMb: 40 }),
      ...stub("qwen3-coder-30b", { port: ports[2], holdMb: 200, loadMs: LOAD_MS }),
      ...stub("deepseek-v3", { port: ports[4], file: { memory: "400GiB" } }),
    },
    scenes: {
      day: { models: ["qwen3-32b", "bge-m3"], gateways: { chat: "qwen3-32b" } },
      night: { models: ["qwen3-coder-30b", "bge-m3"], gateways: { chat: "qwen3-coder-30b" } },
      everything: { models: ["deepseek-v3", "bge-m3"] },
    },
  };
  fs.writeFileSync(path.join(root, "scenes.yaml"), stringify(file));
}

async function activate(world: WebWorld, nodeId: string, scene: string): Promise<void> {
  const asked = await world.admin.call("nodeScene", { params: { nodeId }, body: { scene } });
  await until(`${scene} is answered`, async () => {
    const { scenes, wish } = await world.admin.call("nodeShow", { params: { nodeId } });
    return wish?.number === asked.wish?.number && scenes?.wish?.number === wish?.number && scenes?.busy === null;
  });
}

type Shapes = Readonly<Record<string, BrowserContextOptions>>;
type Shoot = (page: Page, name: string) => Promise<unknown>;

export async function shootScenes(t: TestContext, folder: string, shapes: Shapes): Promise<void> {
  const world = await createWebWorld(t);
  const { machine, nodeId } = await startNode(t, world, "anna");
  const long = await world.node("anna-with-a-name-as-long-as-names-may-be-0123456789-0123456789ab");
  const address = `/nodes/${nodeId}`;
  const pages: [string, Page][] = [];
  for (const [shape, options] of Object.entries(shapes))
    pages.push([shape, await world.signedIn(address, undefined, options)]);
  const each = async (work: (page: Page, shoot: Shoot) => Promise<unknown>): Promise<void> => {
    for (const [shape, page] of pages)
      await work(page, (shown, name) =>
        shown.screenshot({ path: path.join(folder, `${name}-${shape}.png`), fullPage: true }),
      );
  };
  await each(async (page, shoot) => {
    await page.getByText("holdfast scene init").waitFor();
    await shoot(page, "scenes-none");
  });
  await writeScenes(machine.root);
  await activate(world, nodeId, "day");
  await each(async (page, shoot) => {
    await page.getByText("serving").waitFor();
    await page.getByRole("table", { name: "Model servers" }).waitFor();
    await page.getByRole("button", { name: "Switch to night…" }).click();
    await shoot(page, "scenes-dialog");
    await page.keyboard.press("Escape");
    await shoot(page, "scenes");
  });
  await world.admin.call("nodeScene", { params: { nodeId }, body: { scene: "night" } });
  await each(async (page, shoot) => {
    await page.getByText("marker: ").waitFor();
    await page.getByText(/^(?:[6-9]|1\d) s$/).waitFor();
    await shoot(page, "scenes-switch");
  });
  await until(
    "night is active",
    async () => {
      const { scenes } = await world.admin.call("nodeShow", { params: { nodeId } });
      return scenes?.busy === null && scenes.active === "night";
    },
    { withinMs: 60_000 },
  );
  await activate(world, nodeId, "everything");
  await tellScenes(long, longScenes);
  await each(async (page, shoot) => {
    await page.getByText("refused:").waitFor();
    await shoot(page, "scenes-refused");
    await page.goto("/nodes");
    await page.getByText("night", { exact: true }).waitFor();
    await shoot(page, "scenes-nodes");
    await tellScenes(long, longScenes);
    await page.goto(`/nodes/${long.nodeId}`);
    await page.getByText("Under way: ").waitFor();
    await shoot(page, "scenes-long");
    await page.context().close();
  });
}

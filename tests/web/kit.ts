// SPDX-License-Identifier: Apache-2.0
// A real browser on a real controller that serves the built page. Rule: whatever a page logs as an error, throws, or violates
// of its Content-Security-Policy fails the test, unless the test expects it by name.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Client } from "../../src/client/client.ts";
import { ensureWeb } from "../../tools/web.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import type { NodeDouble } from "../kit/node-double.ts";
import { createWorld, type Served, type World } from "../kit/world.ts";

const pageDirectory = fileURLToPath(new URL("../../web/dist", import.meta.url));
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const WAIT_MS = 15_000;

function chromiumPath(): string {
  const places = (process.env["PATH"] ?? "").split(":").map((directory) => path.join(directory, "chromium"));
  const found = places.find((file) => fs.existsSync(file));
  assert.ok(found !== undefined, "chromium is not on PATH; run: node tools/system-needs.ts");
  return found;
}

let shared: Promise<Browser> | undefined;
after(async () => (await shared)?.close());

/** One program for a test file; each page of it has cookies of its own. */
function sharedBrowser(): Promise<Browser> {
  shared ??= chromium.launch({ executablePath: chromiumPath(), args: ARGUMENTS, downloadsPath: os.tmpdir() });
  return shared;
}

export type WebWorld = World & {
  /** A browser of its own: nothing shared with the others. */
  readonly open: (options?: BrowserContextOptions) => Promise<Page>;
  /** One that is signed in, at this address. */
  readonly signedIn: (address?: string, userId?: string, options?: BrowserContextOptions) => Promise<Page>;
};

export async function createWebWorld(t: TestContext, served: Served = {}): Promise<WebWorld> {
  await ensureWeb();
  const world = await createWorld(t, {}, { pageDirectory, ...served });
  const browser = await sharedBrowser();
  const faults: string[] = [];
  cleanupOf(t).defer(() => assert.deepEqual(faults, [], "what the pages complained about"));
  const open = async (options: BrowserContextOptions = {}): Promise<Page> => {
    const context = await browser.newContext({ baseURL: world.url, ...options });
    context.setDefaultTimeout(WAIT_MS);
    cleanupOf(t).defer(() => context.close());
    const page = await context.newPage();
    watch(page, faults);
    return page;
  };
  const signedIn: WebWorld["signedIn"] = async (address = "/", userId, options) => {
    const page = await open(options);
    await page.goto((await linkFor(world.admin, userId)).path);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    if (address !== "/") await page.goto(address);
    return page;
  };
  return Object.assign(world, { open, signedIn });
}

export function linkFor(client: Client, userId?: string) {
  return client.call("loginLinkCreate", { body: userId === undefined ? {} : { userId } });
}

/** A refused request is logged by the browser itself; whether the page handled it is for the test to see. */
const BY_THE_BROWSER =
  /^Failed to load resource: the server responded with a status of 4\d\d|ERR_(?:INCOMPLETE|CONNECTION|EMPTY)/;

function watch(page: Page, faults: string[]): void {
  page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !BY_THE_BROWSER.test(message.text()))
      faults.push(`${page.url()}: ${message.text()}`);
  });
}

const RENEW_MS = 500;

/** Claims and starts the next job and keeps its lease, as an agent would. */
export async function startNext(t: TestContext, node: NodeDouble) {
  const [claimed] = await node.claim(1, { waitMs: 5_000 });
  assert.ok(claimed !== undefined, "there was no job to claim");
  assert.equal(await node.start(claimed.jobId, claimed.epoch), "done");
  // Once the job has ended there is nothing to renew, and the controller is gone before this is cleared.
  const timer = setInterval(() => void node.renew(claimed.jobId, claimed.epoch).catch(() => undefined), RENEW_MS);
  cleanupOf(t).defer(() => clearInterval(timer));
  return claimed;
}

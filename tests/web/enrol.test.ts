// SPDX-License-Identifier: Apache-2.0
// Adding a machine in the page: the code, the command, every phase as the script reports it, a failure with what to do, a node
// that comes online; taking a node over; a code that runs out. The reports and the nodes go over the real routes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { plainEnrolment } from "../kit/enrolment.ts";
import { machineWith } from "./enrol-machine.ts";
import { createWebWorld } from "./kit.ts";

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const dialog = (page: Page) => page.getByRole("dialog");
const step = (page: Page, phase: string) =>
  page.getByRole("list", { name: "Progress" }).getByRole("listitem").filter({ hasText: phase });

async function makeCode(page: Page, name: string): Promise<string> {
  await button(page, "Add a machine").click();
  await page.getByLabel("Name of the node").fill(name);
  await button(page, "Make a code").click();
  await dialog(page).getByText("shown only now").waitFor();
  return shownCode(page);
}

async function shownCode(page: Page): Promise<string> {
  return (await page.locator(".secret code").textContent()) ?? "";
}

/** Where everything of the dialog stands; nothing of it may move while the machine reports. */
const places = (page: Page) =>
  page.evaluate(
    "[...document.querySelectorAll('dialog .secret, dialog .command-line, dialog .code-life, dialog .steps :is(li, strong, .detail), dialog > .buttons')].map((each) => { const { x, y } = each.getBoundingClientRect(); return `${each.tagName} ${Math.round(x)} ${Math.round(y)}`; })",
  );

test("a machine is added: the code and the command, each phase as it is reported, and the node online, while nothing moves", async (t) => {
  const world = await createWebWorld(t, { enrolment: await plainEnrolment(t) });
  const page = await world.signedIn("/nodes", undefined, { viewport: { width: 360, height: 740 } });
  const code = await makeCode(page, "anna");
  assert.match(code, /^hfp_/);
  const [command = ""] = await dialog(page).locator(".command-line code").allTextContents();
  assert.match(command, new RegExp(`^curl -fsS ${world.url}/v1/bootstrap.sh \\| sh -s -- --controller ${world.url}$`));
  assert.ok(!command.includes(code), "the code is in no command");
  await button(page, "Copy the command").waitFor();
  await page.getByText("Read the script first").press("Enter");
  const hash = dialog(page).locator(".read-first p code");
  await hash.waitFor();
  const [sha256 = ""] = await hash.allTextContents();
  assert.match(sha256, /^[0-9a-f]{64}$/);
  await dialog(page).locator(".command-line").getByText(sha256).waitFor();
  await page.getByText("Read the script first").press("Enter");
  await dialog(page)
    .getByRole("timer")
    .getByText(/^1[45]:\d\d$/)
    .waitFor();
  await dialog(page).getByText("nothing was reported yet").waitFor();

  const before = await places(page);
  const { report, pair } = machineWith(world.url, code);
  await report("fetch", "begun");
  await step(page, "fetch").getByText("goes on").waitFor();
  await report("fetch", "done", "agent 0.1.0 for x64, system layout, on anna.lan");
  await step(page, "fetch").getByText("agent 0.1.0 for x64").waitFor();
  await step(page, "fetch")
    .getByText(/^\d+\.\d s$/)
    .waitFor();
  await report("install", "begun");
  await report("install", "failed", "the disk is full");
  const alert = dialog(page).getByRole("status").last();
  await alert.getByText("the disk is full").waitFor();
  await alert.getByText("run the command again: the code is still good").waitFor();
  await report("fetch", "begun");
  await step(page, "install").getByText("not yet").waitFor();
  for (const phase of ["fetch", "install", "pair"] as const) await report(phase, "done");
  const node = await pair();
  await step(page, "pair")
    .getByText(/^from 127\.0\.0\.1, key [0-9a-f]{16}$/)
    .waitFor();
  await dialog(page).getByText("used", { exact: true }).waitFor();
  await node.hello();
  await alert.getByText("anna is online").waitFor();
  assert.deepEqual(await places(page), before, "nothing moved");
  await page.getByRole("link", { name: "Open its page" }).click();
  await page.locator("h1").getByText("anna").waitFor();
  assert.ok(!(await page.content()).includes(code));
});

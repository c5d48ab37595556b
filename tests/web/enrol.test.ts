// SPDX-License-Identifier: Apache-2.0
// Adding a machine in the page: the code, the command, every phase as the script reports it, a failure with what to do, a node
// that comes online; taking a node over; a code that runs out. The reports and the nodes go over the real routes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { createClient } from "../../src/client/client.ts";
import type { Device } from "../../src/protocol/node-schema.ts";
import { plainEnrolment } from "../kit/enrolment.ts";
import { newNodeKey } from "../kit/node-double.ts";
import { keepOnline, machineWith } from "./enrol-machine.ts";
import { createWebWorld } from "./kit.ts";
import { until } from "../kit/until.ts";

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

/** As long as names may be. */
const LONG = "anna-with-a-name-as-long-as-names-may-be-0123456789-0123456789ab";

/** Pixels that the page, or the dialog in it, is too wide. */
const excess = (page: Page) =>
  page.evaluate(
    "Math.max(...[...document.querySelectorAll('html, dialog')].map((each) => each.scrollWidth - each.clientWidth))",
  );

test("a machine is added: the code and the command, each phase as it is reported, and the node online, while nothing moves", async (t) => {
  const world = await createWebWorld(t, { enrolment: await plainEnrolment(t) });
  const page = await world.signedIn("/nodes", undefined, { viewport: { width: 360, height: 740 } });
  const code = await makeCode(page, LONG);
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
  assert.equal(await excess(page), 0, "no wider than a phone");
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
  await alert.getByText("is online").waitFor();
  assert.deepEqual(await places(page), before, "nothing moved");
  assert.equal(await excess(page), 0, "no wider than a phone");
  await page.getByRole("link", { name: "Open its page" }).click();
  await page.locator("h1").getByText(LONG).waitFor();
  await until("the code is gone with its dialog", async () => !(await page.content()).includes(code));
});

test("a name that is taken is taken over after a question: the new machine is the node, the one before it is refused", async (t) => {
  const world = await createWebWorld(t, { enrolment: await plainEnrolment(t) });
  const before = await world.node("anna");
  keepOnline(t, before);
  const page = await world.signedIn("/nodes");
  await button(page, "Add a machine").press("Enter");
  await page.keyboard.type("anna");
  await page.keyboard.press("Enter");
  await dialog(page).getByText("a node named anna exists").waitFor();
  await button(page, "Take anna over…").press("Enter");
  await dialog(page).getByText("the credential of the machine that is anna now ends for good").waitFor();
  await dialog(page).getByText("anna is online now").waitFor();
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Take anna over?");
  await button(page, "Choose another name").press("Enter");
  await dialog(page).getByLabel("Name of the node").fill("berta");
  assert.equal((await world.admin.call("pairingList", {})).items.length, 1, "asking makes no code");

  await page.goto(`/nodes/${before.nodeId}`);
  await button(page, "Take over…").press("Enter");
  await button(page, "Make a code that takes anna over").press("Enter");
  await dialog(page).getByText("shown only now").waitFor();
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Take anna over");
  const { report, pair } = machineWith(world.url, await shownCode(page));
  await report("pair", "begun");
  await before.heartbeat();
  const after = await pair();
  assert.equal(after.nodeId, before.nodeId);
  await dialog(page).getByText("used", { exact: true }).waitFor();
  assert.equal(
    await dialog(page).getByText("is online").count(),
    0,
    "a heartbeat of the machine before does not count",
  );
  await after.hello();
  await dialog(page).getByText("is online").waitFor();
  await assert.rejects(before.heartbeat(), { code: "unauthenticated" });
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Take over…");
  await world.admin.call("nodeRetire", { params: { nodeId: after.nodeId } });
  await page.locator("h1").getByText("retired").waitFor();
  assert.match((await button(page, "Take over…").getAttribute("title")) ?? "", /a retired node is not taken over/);
});

test("who closed the dialog finds the pairing in a list with what was heard last, until its code ends; then another is made", async (t) => {
  const world = await createWebWorld(t, { enrolment: await plainEnrolment(t) });
  const page = await world.signedIn("/nodes", undefined, { viewport: { width: 360, height: 740 } });
  const code = await makeCode(page, "anna");
  await page.keyboard.press("Escape");
  const rowOf = (name: string) =>
    page.getByRole("table", { name: "Pairings under way" }).getByRole("row").filter({ hasText: name });
  const row = rowOf("anna");
  await row.getByText("waiting").waitFor();
  await row
    .getByRole("timer")
    .getByText(/^1[45]:\d\d$/)
    .waitFor();
  const { report, pair } = machineWith(world.url, code);
  await report("install", "begun");
  await row.getByText("install begun").waitFor();
  await report("install", "failed", "clock_off: the certificate is not yet valid");
  await row.getByText("install failed: clock_off").waitFor();
  await row.locator(".state").getByText("failed").waitFor();
  assert.equal(await excess(page), 0, "no wider than a phone");
  await button(page, "Show how far anna is").press("Enter");
  await dialog(page).getByText("timedatectl set-ntp true").waitFor();
  assert.equal(await page.getByText(code).count(), 0);
  await report("install", "begun");
  await (await pair()).hello();
  await dialog(page).getByText("is online").waitFor();
  await row.waitFor({ state: "detached" });
  await page.keyboard.press("Escape");

  const other = await makeCode(page, "berta");
  await world.sql("update app.pairing_code set expires_at = now() + interval '65 seconds'");
  await dialog(page)
    .getByRole("timer")
    .getByText(/^(1:0|0:[1-5])\d$/)
    .waitFor();
  await world.sql("update app.pairing_code set expires_at = now()");
  await dialog(page).getByText("expired", { exact: true }).waitFor();
  await dialog(page).getByText("the code expired before anybody used it").waitFor();
  await rowOf("berta").waitFor({ state: "detached" });
  await button(page, "Make a new code").press("Enter");
  await dialog(page).getByText("nothing was reported yet").waitFor();
  assert.notEqual(await shownCode(page), other);
});

const card: Device = {
  kind: "gpu",
  vendor: "NVIDIA",
  name: "RTX",
  address: "0000:01:00.0",
  memoryBytes: 24 * 2 ** 30,
  memoryAvailableBytes: 20 * 2 ** 30,
  memoryCapBytes: null,
  unified: false,
  driver: "580.95",
  state: "ok",
  reason: null,
};
const unread = { memoryBytes: null, memoryAvailableBytes: null, driver: null };
const devices: Device[] = [
  card,
  { ...card, ...unread, name: "Lost", state: "lost", reason: "it fell off the bus" },
  { ...card, ...unread, name: "Shared", address: null, unified: true, memoryCapBytes: 96 * 2 ** 30 },
];

test("a node's page says what to do about its devices and its boundary, how its credential is replaced, and that it was uninstalled", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna", { devices });
  keepOnline(t, node);
  await world.node("berta");
  await world.sql("update app.node set boundary_state = 'untrusted', boundary_why = 'the slots disagree'");
  const page = await world.signedIn(`/nodes/${node.nodeId}`, undefined, { viewport: { width: 360, height: 740 } });
  const attention = page.getByRole("list", { name: "What needs attention" });
  await attention.getByText("node anna refuses every job: the slots disagree").waitFor();
  await attention.getByText("Lost of node anna cannot be used: lost, it fell off the bus").waitFor();
  assert.equal(await attention.getByText("berta").count(), 0, "what is wrong with others is on their pages");
  const boundary = page.getByRole("region", { name: "Boundary", exact: true });
  await boundary.getByText("the slots disagree").waitFor();
  await boundary.getByText("holdfast boundary reset --i-know-jobs-may-repeat").waitFor();
  const rows = page.getByRole("table", { name: "Devices" }).locator("tbody tr");
  const cells = (name: string) => rows.filter({ hasText: name }).locator("td").allTextContents();
  assert.deepEqual(await cells("RTX"), ["RTX gpu 0000:01:00.0", "24.0 GiB", "20.0 GiB", "–", "580.95", "● ok"]);
  assert.deepEqual((await cells("Lost")).slice(1, -1), ["unknown", "unknown", "–", "unknown"], "never zero");
  assert.match((await cells("Lost")).at(-1) ?? "", /^▲ lost it fell off the bus.*reboot/);
  assert.deepEqual((await cells("Shared")).slice(0, 4), ["Shared gpu", "the machine's", "unknown", "96.0 GiB"]);

  const fact = (name: string) => page.locator(".facts > div").filter({ hasText: new RegExp(`^${name}`) });
  await fact("Credential").getByText("in use").waitFor();
  await button(page, "Rotate credential").click();
  await fact("Credential").getByText("A new credential was asked for").waitFor();
  const { credential, credentialHash } = newNodeKey();
  await node.client.call("nodeCredential", { body: { credentialHash } });
  await fact("Credential").getByText("A new credential was offered").waitFor();
  const client = createClient({ baseUrl: world.url, credential });
  const now = new Date().toISOString();
  await client.call("nodeHeartbeat", { body: { sessionId: node.sessionId, facts: node.facts, now } });
  await fact("Credential").getByText("in use").waitFor();
  await client.call("nodeLeave", {});
  await page.locator("h1").getByText("uninstalled").waitFor();
  await attention.getByText("holdfast node pair anna --take-over").waitFor();
  await fact("Uninstalled").locator("time").waitFor();
});

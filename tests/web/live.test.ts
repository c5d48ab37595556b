// SPDX-License-Identifier: Apache-2.0
// What the page shows by itself: what needs attention, what changes elsewhere, and that the connection is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWebWorld, startNext } from "./kit.ts";

test("an offline node and a blocked job come first on the overview, with advice and a way to them", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn();
  await page.getByText("All is well").waitFor();
  await page.getByText("npx holdfast node pair NAME").waitFor();
  await page.getByText("npx holdfast job run -- echo hello").waitFor();
  const node = await world.node("anna");
  await page.getByRole("link", { name: "anna" }).waitFor();
  await world.admin.call("jobSubmit", { body: { command: ["train"], requires: { memoryBytes: 2 ** 43 } } });
  const attention = page.getByRole("list", { name: "What needs attention" });
  await attention.getByText("1 job is blocked: no node fits: too small: needs 8192.0 GiB").waitFor();
  await attention.getByText("They run as soon as a node that fits is online").waitFor();
  // No heartbeat any more: offline after three intervals.
  await attention.getByText("node anna is offline").waitFor();
  assert.match((await attention.getByRole("listitem").first().textContent()) ?? "", /error/);
  await attention.getByRole("link", { name: "Show queued jobs" }).click();
  await page.getByText("queued, blocked").waitFor();
  assert.equal(new URL(page.url()).searchParams.get("state"), "queued");
  await page.goto("/");
  await attention.getByRole("link", { name: "Show the node" }).click();
  await page.locator("h1").getByText("offline").waitFor();
  await attention.getByText("node anna is offline").waitFor();
  await attention.getByText("run holdfast doctor there").waitFor();
  await node.heartbeat();
  await page.locator("h1").getByText("online").waitFor();
  await attention.waitFor({ state: "detached" });
});

test("what changes elsewhere is shown without a reload, on the list that is open", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna");
  const page = await world.signedIn("/jobs");
  await page.getByText("No job yet").waitFor();
  await page.evaluate("window.sameDocument = true");
  await world.admin.call("jobSubmit", { body: { command: ["echo", "from elsewhere"] } });
  await page.getByRole("link", { name: "echo 'from elsewhere'" }).waitFor();
  const { jobId, epoch } = await startNext(t, node);
  await page.getByRole("table").getByText("running").waitFor();
  await node.end(jobId, epoch, { exitCode: 3 });
  await page.getByRole("table").getByText("exit code 3").waitFor();
  assert.equal(await page.evaluate("window.sameDocument"), true);
});

test("a node is drained and made active again from the page, each button says why it cannot be pressed, retiring asks first", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna");
  const page = await world.signedIn(`/nodes/${node.nodeId}`);
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  assert.equal(await button("Activate").getAttribute("title"), "only a draining node can be made active again");
  await button("Drain").click();
  await page.getByText("Draining: it finishes what it holds").waitFor();
  assert.equal(await button("Drain").getAttribute("title"), "only an active node can be drained");
  await button("Activate").click();
  await until("it is active", async () => (await world.admin.call("nodeList", {})).items[0]?.status === "active");
  await button("Rotate credential").click();
  await page.getByText("A new credential was asked for").waitFor();
  await button("Retire").click();
  await page.getByRole("dialog").getByText("This cannot be undone").waitFor();
  await page.keyboard.press("Escape");
  await button("Retire").click();
  await page.getByRole("dialog").getByRole("button", { name: "Retire anna" }).click();
  await page.locator("h1").getByText("retired").waitFor();
  assert.equal(await button("Retire").getAttribute("title"), "the node is retired already");
});

test("a lost connection is said in words, and goes on by itself when the controller is back", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn("/jobs");
  await page.getByText("live", { exact: true }).waitFor();
  await world.stopController();
  await page.getByText("Connection lost, trying again").waitFor();
  await world.startController();
  await page.getByText("live", { exact: true }).waitFor();
  await page.getByText("Connection lost").waitFor({ state: "detached" });
  await world.admin.call("jobSubmit", { body: { command: ["echo", "after"] } });
  await page.getByRole("link", { name: "echo after" }).waitFor();
});

test("a hidden tab holds no stream, and is up to date when it is looked at again", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn("/jobs");
  await page.getByText("live", { exact: true }).waitFor();
  const look = (state: "hidden" | "visible") =>
    page.evaluate(
      `Object.defineProperty(document, "visibilityState", { get: () => "${state}", configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`,
    );
  const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/v1/changes"));
  await look("hidden");
  await ended;
  await world.admin.call("jobSubmit", { body: { command: ["echo", "meanwhile"] } });
  const begun = page.waitForRequest((request) => request.url().endsWith("/v1/changes"));
  await look("visible");
  await begun;
  await page.getByRole("link", { name: "echo meanwhile" }).waitFor();
});

test("without a bundle of the agent a code comes with the lines for a checkout, shown once, and names why", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn("/nodes");
  await page.getByRole("button", { name: "Add a machine" }).click();
  await page.getByLabel("Name of the node").fill("berta");
  await page.getByRole("button", { name: "Make a code" }).click();
  await page.getByText("shown only now").waitFor();
  await page.getByText("This controller has no bundle of the agent").waitFor();
  await page.getByText(`npx holdfast agent --join ${world.url}`).waitFor();
  const code = (await page.locator(".secret code").textContent()) ?? "";
  assert.ok(code.length > 8);
  await page.keyboard.press("Escape");
  await until("the code is gone with its dialog", async () => !(await page.content()).includes(code));
});

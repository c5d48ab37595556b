// SPDX-License-Identifier: Apache-2.0
// The scenes of a node on its page: switched from there with a real agent and real model servers, refused with the node's own
// reason, and never in the way of who may not.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { stringify } from "yaml";
import { startNode } from "../agent/kit.ts";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { stub } from "../scenes/kit.ts";
import { createWebWorld, type WebWorld } from "./kit.ts";
import { longScenes, tellScenes } from "./scene-reports.ts";

/** Scenes of red and green, of blue and green, and one that fits nowhere. Blue loads until the function returned is called. */
async function writeScenes(root: string): Promise<() => Promise<unknown>> {
  const [red, green, blue, gateway] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const file = {
    version: 1,
    gateways: { main: { listen: `127.0.0.1:${gateway}` } },
    models: {
      ...stub("red", { port: red }),
      ...stub("green", { port: green }),
      ...stub("blue", { port: blue, hangs: true }),
      ...stub("huge", { port: blue + 1, file: { memory: "90TiB" } }),
    },
    scenes: {
      warm: { models: ["red", "green"], gateways: { main: "red" } },
      cold: { models: ["blue", "green"], gateways: { main: "blue" } },
      vast: { models: ["huge"] },
    },
  };
  fs.writeFileSync(path.join(root, "scenes.yaml"), stringify(file));
  return () => fetch(`http://127.0.0.1:${blue}/control`, { method: "POST", body: JSON.stringify({ hangs: false }) });
}

const part = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const row = (page: Page, table: string, model: string) =>
  page.getByRole("table", { name: table }).getByRole("row").filter({ hasText: model });
const focused = (page: Page) => page.evaluate("document.activeElement.getAttribute('aria-label')");

async function preview(page: Page): Promise<string> {
  return (await page.getByRole("dialog").locator(".preview > div").allTextContents()).join(" | ");
}

test("a scene is switched from the page: asked for after a preview, watched model by model, answered, and stopped after a question", async (t) => {
  const world = await createWebWorld(t);
  const { machine, nodeId } = await startNode(t, world, "anna");
  const page = await world.signedIn(`/nodes/${nodeId}`);
  // Nothing is wrong with a machine without scenes.
  await part(page, "Scenes").getByText("npx holdfast scene init").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  const letLoad = await writeScenes(machine.root);

  await button(page, "Switch to warm…").click();
  assert.match(await preview(page), /^Staysnothing \| Stopsnothing \| Startsred, green \| Memory[\d.]+ GiB available/);
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), "Switch to warm…");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Switch to warm" }).press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(await focused(page), "Switch to warm…");
  const answer = part(page, "Scenes").getByRole("status");
  await answer.getByText("done: warm is active").waitFor();
  await row(page, "Model servers", "green").getByText("healthy").waitFor();
  assert.match((await row(page, "Model servers", "red").textContent()) ?? "", /"red"\d+\d{5}[\d.]+ MiB/);
  await row(page, "Gateways", "main").getByText("serving red").waitFor();
  await part(page, "Memory against the floor").getByText("GiB available").waitFor();

  await button(page, "Switch to cold…").click();
  assert.match(await preview(page), /^Staysgreen \| Stopsred \| Startsblue \| .*what stops gives back about/);
  await page.getByRole("dialog").getByRole("button", { name: "Switch to cold" }).click();
  const switching = page.getByRole("table", { name: "Under way: a switch to cold" });
  await switching.getByRole("row").filter({ hasText: "blue" }).getByText("loading").waitFor();
  await switching.getByText(/^marker: /).waitFor();
  await switching.getByText(/^[1-9]\d* s$/).waitFor();
  assert.equal(await reasonOf(page, "Switch to vast…"), "a switch to cold is not over yet");
  await letLoad();
  await answer.getByText("done: cold is active").waitFor();
  await row(page, "The last switch", "blue").getByText("healthy").waitFor();
  assert.match((await row(page, "The last switch", "blue").textContent()) ?? "", /\d\.\d s$/);
  await row(page, "Scenes", "cold").getByText("active").waitFor();

  await button(page, "Stop all…").click();
  await page.getByRole("dialog").getByText("its gateways refuse").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Stop all models" }).click();
  await answer.getByText("done: no scene is active").waitFor();
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Stop all…");
  await page.goto("/nodes");
  await page.getByRole("columnheader", { name: "Scene" }).waitFor();
});

test("a refused switch shows the node's own reason, which stays until the next answer; what is active is in the list of nodes", async (t) => {
  const world = await createWebWorld(t);
  const { machine, nodeId } = await startNode(t, world, "anna");
  await writeScenes(machine.root);
  const page = await world.signedIn(`/nodes/${nodeId}`);
  await button(page, "Switch to vast…").click();
  await page.getByRole("dialog").getByRole("button", { name: "Switch to vast" }).click();
  const answer = part(page, "Scenes").getByRole("status");
  await answer.getByText(/vast is not activated: memory: 90\.0 TiB/).waitFor();
  await page.reload();
  await answer.getByText("refused:").waitFor();
  await world.admin.call("nodeScene", { params: { nodeId }, body: { scene: "warm" } });
  await answer.getByText("done: warm is active").waitFor();
  assert.equal(await page.getByText("refused:").count(), 0);
  await page.goto("/nodes");
  await row(page, "Nodes", "anna").getByText("warm", { exact: true }).waitFor();
});

async function reasonOf(page: Page, name: string): Promise<string | null> {
  return button(page, name).getAttribute("title");
}

test("who may not switch, and what cannot be switched, is told why at each button, by keyboard too", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna");
  await tellScenes(node, { doubt: "the state of its scenes could not be read" });
  const page = await world.signedIn(`/nodes/${node.nodeId}`);
  await page.getByRole("alert").getByText("the state of its scenes could not be read").waitFor();
  assert.equal(await reasonOf(page, "Switch to night…"), null);
  await onlyReads(world);
  await page.reload();
  await button(page, "Switch to night…").press("Enter");
  const needs = /^this needs the scope fleet:write, which .* does not have here: ask an admin$/;
  await row(page, "Scenes", "night").getByText(needs).waitFor();
  assert.match((await reasonOf(page, "Stop all…")) ?? "", needs);
  assert.equal(await page.getByRole("dialog").count(), 0);

  const other = await world.signedIn(`/nodes/${node.nodeId}`);
  await tellScenes(node, {});
  // Its heartbeats end here.
  await until("it is offline", async () => (await reasonOf(other, "Switch to night…")) !== null);
  assert.equal(await reasonOf(other, "Switch to night…"), "it is not online: it can be asked when it is back");
  await world.admin.call("nodeScene", { params: { nodeId: node.nodeId }, body: { scene: "night" } });
  await other.getByText("it is not online: it will act when it is back").waitFor();
  await world.admin.call("nodeRetire", { params: { nodeId: node.nodeId } });
  await other.locator("h1").getByText("retired").waitFor();
  assert.equal(await reasonOf(other, "Stop all…"), "a retired node switches no scenes");
});

/** Whoever is signed in in a browser may read from now on, and no more. */
async function onlyReads(world: WebWorld): Promise<void> {
  const changed = await world.sql(
    "update app.credential set scopes = '{fleet:read}' where kind = 'browser' returning id",
  );
  assert.equal(changed.length, 1);
}

test("scenes with the longest names are no wider than a phone, and nothing moves while numbers change", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna-with-a-name-as-long-as-names-may-be-0123456789-0123456789ab");
  const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };
  await tellScenes(node, longScenes);
  const page = await world.signedIn(`/nodes/${node.nodeId}`, undefined, phone);
  await page.getByText("Under way: ").waitFor();
  const excess = () => page.evaluate("Math.max(document.documentElement.scrollWidth, window.innerWidth) - 360");
  assert.equal(await excess(), 0);
  const heights = () =>
    page.evaluate("[...document.querySelectorAll('main section')].map((each) => each.clientHeight)");
  await page.locator(".loading").first().waitFor({ state: "detached" });
  const before = await heights();
  const models = longScenes.models.map((model) => ({ ...model, anonymousBytes: 2 ** 30, swappedBytes: 2 ** 34 }));
  await tellScenes(node, { ...longScenes, models, availableBytes: 2 ** 33 });
  await page.getByText("16.0 GiB").first().waitFor();
  await page.getByText("8.0 GiB available").waitFor();
  assert.deepEqual(await heights(), before);
  await tellScenes(node, { ...longScenes, busy: null });
  await button(page, `Switch to ${longScenes.scenes[1]?.name ?? ""}…`).click();
  await page.getByRole("dialog").waitFor();
  assert.equal(await excess(), 0);
  const inside = await page.evaluate(
    "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('dialog'))",
  );
  assert.equal(inside, 0, "the dialog is wider than the phone");
  await page.keyboard.press("Escape");
  await page.goto("/nodes");
  await page.getByText(`→ ${longScenes.transition ?? ""}`).waitFor();
  assert.equal(await excess(), 0);
});

// SPDX-License-Identifier: Apache-2.0
// Every page: nothing is logged as an error, nothing breaks the Content-Security-Policy, nothing is wider than a phone, and
// what others wrote is text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createWebWorld, startNext } from "./kit.ts";

const HOSTILE = `<img src=x onerror="window.hostile=1">\u001b[31m\u202Egnp.exe\u0007`;

test("hostile text of a job, a node and a model is shown as text, and never obeyed", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna", { hostname: HOSTILE, cpuName: HOSTILE, version: HOSTILE });
  await world.admin.call("modelAdd", { body: { name: "m", description: HOSTILE, marker: HOSTILE } });
  const job = await world.admin.call("jobSubmit", {
    body: {
      command: ["echo", HOSTILE],
      environment: { A: HOSTILE },
      input: { [HOSTILE]: HOSTILE },
      labels: { a: HOSTILE },
    },
  });
  const { jobId, epoch } = await startNext(t, node);
  await node.log(jobId, epoch, { offset: 0, text: `${HOSTILE}\r\n` });
  await node.end(jobId, epoch, { exitCode: 1, result: HOSTILE, message: HOSTILE });
  const page = await world.signedIn();
  for (const address of [`/jobs/${job.id}`, "/jobs", "/models", `/nodes/${node.nodeId}`, "/audit"]) {
    await page.goto(address);
    await page.locator("main h1").waitFor();
    if (address !== "/audit") await page.locator(".control", { hasText: "ESC" }).first().waitFor();
    assert.equal(await page.evaluate("window.hostile"), undefined);
    assert.equal(await page.locator("main img").count(), 0);
    const text = (await page.locator("body").textContent()) ?? "";
    assert.ok(!text.includes("\u202E") && !text.includes("\u001b"), address);
  }
  await page.goto(`/jobs/${job.id}`);
  const line = page.getByRole("log").locator(".log-line").first();
  assert.match((await line.textContent()) ?? "", /<img src=x onerror="window\.hostile=1">ESC\[31mU\+202Egnp\.exeBEL/);
});

test("every page is without an error, without a violation, titled, and no wider than 360 pixels", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna-with-a-name-as-long-as-names-may-be-0123456789-0123456789ab");
  const long = "x".repeat(300);
  await world.admin.call("modelAdd", { body: { name: "m".repeat(64), description: long, marker: "y".repeat(200) } });
  await world.admin.call("projectAdd", { body: { name: "p".repeat(64), description: long } });
  await world.admin.call("userCreate", { body: { name: "u".repeat(64), role: "member" } });
  const job = await world.admin.call("jobSubmit", {
    body: { command: ["echo", long], project: "p".repeat(64), labels: { a: long.slice(0, 200) } },
  });
  const { jobId, epoch } = await startNext(t, node);
  await node.log(jobId, epoch, { offset: 0, text: `${long}\n` });
  await node.end(jobId, epoch, { exitCode: 1, result: { long } });
  const page = await world.signedIn("/", undefined, {
    viewport: { width: 360, height: 740 },
    isMobile: true,
    hasTouch: true,
  });
  const addresses = [
    "/",
    "/nodes",
    `/nodes/${node.nodeId}`,
    "/jobs",
    `/jobs/${job.id}`,
    "/jobs/new",
    "/models",
    "/projects",
    "/people",
    "/credentials",
    "/account",
    "/audit",
    "/nowhere",
  ];
  for (const address of addresses) {
    await page.goto(address);
    await page.locator("main h1").waitFor();
    await page.locator(".loading").first().waitFor({ state: "detached" });
    const excess = await page.evaluate(
      "Math.max(0, document.documentElement.scrollWidth - window.innerWidth, window.innerWidth - 360)",
    );
    assert.equal(excess, 0, `${address} is ${String(excess)} px too wide`);
    const cut = await page.evaluate(
      "[...document.querySelectorAll('button')].filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent)",
    );
    assert.deepEqual(cut, [], `${address}: buttons that are narrower than their text`);
  }
  await page.goto("/");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("link", { name: "Credentials" }).click();
  await page.getByRole("heading", { name: "Credentials" }).waitFor();
});

test("the chosen colours are remembered and there before anything is painted", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn();
  await page.getByLabel("Colours").selectOption("dark");
  await page.reload({ waitUntil: "commit" });
  await page.locator("#root").waitFor({ state: "attached" });
  assert.equal(await page.evaluate("document.documentElement.dataset.theme"), "dark");
  await page.getByLabel("Colours").waitFor();
  assert.equal(await page.getByLabel("Colours").inputValue(), "dark");
});

test("a request that the controller refuses is shown with its message, advice and request id, and can be tried again", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn("/nodes/node_00000000000000000000000000");
  const alert = page.getByRole("alert").first();
  await alert.getByText("Check the name or id; list what there is.").waitFor();
  await alert.getByText("request").waitFor();
  await alert.getByRole("button", { name: "Try again" }).click();
  await alert.getByText("Check the name or id").waitFor();
});

test("models, projects and tokens are made and retired; a secret is shown once", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn("/models");
  await page.getByRole("button", { name: "Add a model" }).click();
  await page.getByLabel("Name").fill("qwen3-32b");
  await page.getByLabel("Memory").fill("24GiB");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("table").getByText("24.0 GiB").waitFor();
  await page.getByRole("button", { name: "Retire qwen3-32b" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retire qwen3-32b" }).click();
  await page.getByText("retired").waitFor();
  await page.goto("/credentials");
  await page.getByRole("button", { name: "Make a token" }).click();
  await page.getByLabel("Name").fill("ci");
  await page.getByRole("button", { name: "Make the token" }).click();
  const secret = (await page.locator(".secret code").textContent()) ?? "";
  assert.match(secret, /^hf/);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  assert.ok(!(await page.content()).includes(secret));
  await page.getByRole("button", { name: "Revoke: ci" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("revoked").waitFor();
});

// SPDX-License-Identifier: Apache-2.0
// Jobs in the page: submit, watch, search, cancel; by mouse and by keyboard alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { until } from "../kit/until.ts";
import { createWebWorld, startNext } from "./kit.ts";

const log = (page: Page) => page.getByRole("log");

/** An expression about the log's box: this kind of test has no types of the browser. */
const ofBox = (page: Page, expression: string): Promise<unknown> =>
  page.evaluate(`(() => { const box = document.querySelector("[role=log]"); return ${expression}; })()`);

test("a job that is submitted in the form runs, and its output appears live, told apart by stream", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna");
  const page = await world.signedIn("/jobs/new");
  await page.getByLabel("Command").fill(`sh -c 'echo "it is"; date' ""`);
  assert.deepEqual(await page.getByRole("list", { name: "Arguments" }).getByRole("listitem").allTextContents(), [
    "sh",
    "-c",
    `echo "it is"; date`,
    "(empty)",
  ]);
  await page.getByLabel("Environment").fill("A=1\nB=x=y");
  await page.getByLabel("Labels").fill("team=vision");
  await page.getByLabel("Retries").fill("2");
  const submit = page.getByRole("button", { name: "Submit", exact: true });
  await submit.dblclick();
  await page.getByRole("log").waitFor();
  const { items } = await world.admin.call("jobList", {});
  assert.equal(items.length, 1, "a double click submits once");
  assert.deepEqual(items[0]?.command, ["sh", "-c", `echo "it is"; date`, ""]);
  const shown = await world.admin.call("jobShow", { params: { jobId: items[0]?.id ?? "" } });
  assert.deepEqual(shown.environment, { A: "1", B: "x=y" });
  assert.deepEqual(shown.retry, { maxAttempts: 3, onFailure: true });
  const { jobId, epoch } = await startNext(t, node);
  await page.locator("h1").getByText("running").waitFor();
  await node.log(jobId, epoch, { offset: 0, text: "first line\nsecond" });
  await node.log(jobId, epoch, { offset: 0, text: "a warning\n", stream: "stderr" });
  await node.log(jobId, epoch, { offset: 17, text: " line\n" });
  await log(page).getByText("second line").waitFor();
  assert.equal(await log(page).locator(".log-line.stderr").textContent(), "3erra warning");
  await node.end(jobId, epoch, { exitCode: 0, result: { count: "9007199254740993" } });
  await page.locator("h1").getByText("succeeded").waitFor();
  await page.getByLabel("Result").getByText('"9007199254740993"').waitFor();
  await page.getByText("complete").waitFor();
  await page.getByRole("list").getByText("by anna, epoch 1").first().waitFor();
});

test("a long log is shown in part only, follows its end until one scrolls up, is searched and downloaded", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna");
  await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const { jobId, epoch } = await startNext(t, node);
  let offset = 0;
  const write = async (text: string): Promise<void> => {
    await node.log(jobId, epoch, { offset, text });
    offset += text.length;
  };
  for (let part = 0; part < 40; part++) {
    await write(Array.from({ length: 1000 }, (_, at) => `line ${part * 1000 + at} of many`).join("\n") + "\n");
  }
  const page = await world.signedIn(`/jobs/${jobId}`);
  await log(page).getByText("line 39999 of many").waitFor();
  assert.ok((await log(page).locator(".log-line").count()) < 200, "lines out of view are not rendered");
  await write("one more\n");
  await log(page).getByText("one more").waitFor();
  await ofBox(page, "box.scrollTop = 1000");
  await until("following stops", async () => !(await page.getByLabel("Follow").isChecked()));
  await write("and another\n");
  await page.getByText("40,002 lines").waitFor();
  assert.ok(
    Number(await ofBox(page, "box.scrollHeight - box.scrollTop - box.clientHeight")) > 1000,
    "the view stays where the reader is",
  );
  await ofBox(page, "box.scrollTop = box.scrollHeight");
  await until("following resumes at the end", () => page.getByLabel("Follow").isChecked());
  await page.keyboard.press("/");
  await page.keyboard.type("LINE 1234 of");
  await page.getByText("1 line", { exact: true }).waitFor();
  await page.keyboard.press("Enter");
  await log(page).locator(".log-line.current mark").getByText("line 1234 of").waitFor();
  await page.getByText("1 of 1").waitFor();
  await page.getByLabel("Search in the output").fill("no such text");
  await page.getByText("no line").waitFor();
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const download = await downloading;
  assert.equal(download.suggestedFilename(), `${jobId}.log`);
  const size = (await until("the whole log", async () => download.createReadStream())).iterator({
    destroyOnReturn: true,
  });
  let bytes = 0;
  for await (const piece of size) bytes += (piece as Buffer).length;
  assert.equal(bytes, offset);
});

test("a character that is cut in two by the end of a chunk is shown whole", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna");
  await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const { jobId, epoch } = await startNext(t, node);
  const bytes = Buffer.from("grün und 日本\n");
  const { sessionId } = node;
  for (const [offset, end] of [
    [0, 3],
    [3, 11],
    [11, bytes.length],
  ] as const) {
    const data = bytes.subarray(offset, end).toString("base64");
    await node.client.call("nodeLog", { body: { sessionId, jobId, epoch, stream: "stdout", offset, data } });
  }
  const page = await world.signedIn(`/jobs/${jobId}`);
  await log(page).getByText("grün und 日本").waitFor();
});

test("cancel works from the page, and is then shown as not possible, with the reason", async (t) => {
  const world = await createWebWorld(t);
  const job = await world.admin.call("jobSubmit", { body: { command: ["sleep", "60"] } });
  const page = await world.signedIn(`/jobs/${job.id}`);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator("h1").getByText("cancelled").waitFor();
  const cancel = page.getByRole("button", { name: "Cancel" });
  assert.equal(await cancel.getAttribute("aria-disabled"), "true");
  assert.equal(await cancel.getAttribute("title"), "the job has already ended");
});

test("faults are shown at their fields: those of the text, and those that the controller names", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn("/jobs/new");
  await page.getByLabel("Command").fill("echo 'not closed");
  await page.getByText("the ' at 6 is not closed").waitFor();
  await page.getByLabel("Command").fill("echo a | wc");
  await page.getByText("No shell reads this").waitFor();
  await page.getByLabel("Memory").fill("lots");
  await page.getByRole("button", { name: "Submit", exact: true }).click();
  await page.getByText("is a size such as 8GiB").waitFor();
  await page.getByLabel("Memory").fill("1GiB");
  await page.getByLabel("Priority").fill("1000");
  await page.getByLabel("Environment").fill("HOLDFAST_X=1");
  await page.getByRole("button", { name: "Submit", exact: true }).click();
  await page
    .locator(".field", { has: page.getByLabel("Priority") })
    .getByText("must be <= 100")
    .waitFor();
  await page
    .locator(".field", { has: page.getByLabel("Environment") })
    .locator(".fault")
    .first()
    .waitFor();
  assert.equal(await page.getByLabel("Priority").getAttribute("aria-invalid"), "true");
  await page.getByLabel("Priority").fill("");
  await page.getByLabel("Environment").fill("");
  await page.getByRole("button", { name: "Submit", exact: true }).click();
  await log(page).waitFor();
});

test("by keyboard alone: to the jobs, into one, and cancel it", async (t) => {
  const world = await createWebWorld(t);
  await world.admin.call("jobSubmit", { body: { command: ["sleep", "60"] } });
  const page = await world.signedIn();
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  await page.getByRole("link", { name: "sleep 60" }).waitFor();
  const tabTo = async (text: string): Promise<void> => {
    for (let steps = 0; steps < 60; steps++) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate("document.activeElement?.textContent ?? ''");
      if (name === text) return;
    }
    assert.fail(`${text} is not reached with Tab`);
  };
  await tabTo("sleep 60");
  const outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
  assert.equal(outline, "solid", "the focus is visible");
  await page.keyboard.press("Enter");
  await page.getByRole("log").waitFor();
  await tabTo("Cancel");
  await page.keyboard.press("Enter");
  await page.locator("h1").getByText("cancelled").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Close a dialog").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("dialog").count(), 0);
});

test("filters and search stand in the address, and the list goes on by cursor", async (t) => {
  const world = await createWebWorld(t);
  for (let index = 0; index < 55; index++)
    await world.admin.call("jobSubmit", { body: { command: ["echo", `n${index}`] } });
  const page = await world.signedIn("/jobs");
  const rows = page.getByRole("table", { name: "Jobs" }).locator("tbody tr");
  await until("a page of them", async () => (await rows.count()) === 50);
  await page.getByRole("button", { name: "Load more" }).click();
  await until("all of them", async () => (await rows.count()) === 55);
  await page.keyboard.press("/");
  await page.keyboard.type("n42");
  await until("one", async () => (await rows.count()) === 1);
  assert.equal(new URL(page.url()).searchParams.get("search"), "n42");
  await page.reload();
  await until("one after a reload", async () => (await rows.count()) === 1);
  assert.equal(await page.getByLabel("Search").inputValue(), "n42");
  await page.getByLabel("State").selectOption("failed");
  await page.getByText("No job matches.").waitFor();
  await page.getByRole("link", { name: "Show all jobs" }).click();
  await until("all again", async () => (await rows.count()) === 50);
});

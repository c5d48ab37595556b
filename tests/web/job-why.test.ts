// SPDX-License-Identifier: Apache-2.0
// The page of a job that waits says why: the answer, each node's verdict, who holds what it waits for; live, until it runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createWebWorld } from "./kit.ts";

const GIB = 2 ** 30;

test("a waiting job's page says what each node says and who holds its memory, and no more of it once it runs", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna", { memoryTotalBytes: 16.5 * GIB, memoryAvailableBytes: 16.5 * GIB });
  await world.node("small", { memoryTotalBytes: 4.5 * GIB, memoryAvailableBytes: 4.5 * GIB });
  const submit = async () =>
    (await world.admin.call("jobSubmit", { body: { command: ["train"], requires: { memoryBytes: 12 * GIB } } })).id;
  const [holder, waiting] = [await submit(), await submit()];
  const [lease] = await node.claim(1);
  assert.equal(lease?.jobId, holder);
  // However slow this machine is, the nodes stay online.
  await world.sql("update app.node_heartbeat set at = now() + interval '1 hour'");
  const page = await world.signedIn(`/jobs/${waiting}`);
  const part = page.locator("section", { has: page.getByRole("heading", { name: "Why it waits" }) });
  await part.getByText(`waiting: fits, busy: anna is held by ${holder}; 0 jobs are before it`).waitFor();
  const verdicts = part.getByRole("table", { name: "What each node says" });
  await verdicts.getByRole("row", { name: /anna.*fits host.*not now.*short by 8.0 GiB/ }).waitFor();
  await verdicts.getByRole("row", { name: /small.*too small.*short by 7.8 GiB/ }).waitFor();
  await page
    .getByRole("table", { name: "Who holds it" })
    .getByRole("row", { name: /anna.*leased.*12.0 GiB/ })
    .waitFor();
  await page.getByText("12.0 GiB of memory", { exact: true }).waitFor();
  if (lease !== undefined) await node.end(lease.jobId, lease.epoch);
  await node.claim(1);
  await page.locator("h1").getByText("leased").waitFor();
  assert.equal(await part.count(), 0);
});

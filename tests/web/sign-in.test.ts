// SPDX-License-Identifier: Apache-2.0
// Getting in and out with a browser: links, passwords, other browsers; and what a member sees instead of buttons.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWebWorld, linkFor } from "./kit.ts";

test("a login link signs in once, leaves the address at once, and is refused a second time with what to do", async (t) => {
  const world = await createWebWorld(t);
  const { path } = await linkFor(world.admin);
  const page = await world.open();
  const sent: string[] = [];
  page.on("request", (request) => sent.push(request.url()));
  await page.goto(path);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/");
  assert.ok(!page.url().includes("hfl_"));
  await page.goBack().catch(() => null);
  assert.ok(!page.url().includes("hfl_"), "the secret is not in the history");
  assert.ok(!sent.some((url) => url.includes("hfl_")), "the secret is in no address that was sent");
  const other = await world.open();
  await other.goto(path);
  const alert = other.getByRole("alert");
  await alert.getByText("this login link was used before: it works once").waitFor();
  await alert.getByText("holdfast login-link").waitFor();
  assert.ok(!other.url().includes("hfl_"));
  await other.getByRole("button", { name: "Copy the command npx holdfast login-link" }).waitFor();
});

test("a second link that is opened in the same tab is taken, and a page that was asked for is shown after signing in", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.open();
  await page.goto("/sign-in");
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await page.goto((await linkFor(world.admin)).path);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});

test("a password is set on the account page, and signs in at the address that was asked for; a wrong one is refused", async (t) => {
  const world = await createWebWorld(t);
  const page = await world.signedIn("/account");
  await page.getByLabel("New password", { exact: true }).fill("correct horse battery");
  await page.getByLabel("New password again").fill("correct horse batterx");
  await page.getByText("is not the same").waitFor();
  await page.getByLabel("New password again").fill("correct horse battery");
  await page.getByRole("button", { name: "Set the password" }).click();
  await page.getByText("The password is set.").waitFor();
  await page.getByLabel("Current password").waitFor();
  const other = await world.open();
  await other.goto("/nodes");
  await other.getByLabel("Name").fill("admin");
  await other.getByRole("textbox", { name: "Password" }).fill("wrong password");
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByText("the name or the password is wrong").waitFor();
  await other.getByRole("textbox", { name: "Password" }).fill("correct horse battery");
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByRole("heading", { name: "Nodes" }).waitFor();
});

test("sign out ends this browser, sign out everywhere another one, which sees the sign-in page without a reload", async (t) => {
  const world = await createWebWorld(t);
  const first = await world.signedIn();
  const second = await world.signedIn("/jobs");
  await first.getByRole("button", { name: "Sign out", exact: true }).click();
  await first.getByRole("button", { name: "Sign in" }).waitFor();
  await second.getByRole("heading", { name: "Jobs" }).waitFor();
  const third = await world.signedIn();
  await third.getByRole("button", { name: "Sign out everywhere" }).click();
  await third.getByRole("button", { name: "Sign in" }).waitFor();
  await second.getByRole("button", { name: "Sign in" }).waitFor();
});

test("a member sees reasons instead of buttons that work, and pressing one sends nothing", async (t) => {
  const world = await createWebWorld(t);
  const node = await world.node("anna");
  const bea = await world.admin.call("userCreate", { body: { name: "bea", role: "member" } });
  const page = await world.signedIn(`/nodes/${node.nodeId}`, bea.id);
  const retire = page.getByRole("button", { name: "Retire" });
  await retire.waitFor();
  assert.equal(await retire.getAttribute("aria-disabled"), "true");
  assert.match(
    (await retire.getAttribute("title")) ?? "",
    /needs the scope fleet:admin, which bea \(member\) does not have/,
  );
  const posts: string[] = [];
  page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
  await retire.click({ force: true });
  await page.locator(".reason").getByText("needs the scope fleet:admin").waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Drain" }).getAttribute("aria-disabled"), "false");
  await page.goto("/people");
  const disable = page.getByRole("button", { name: "Disable admin" });
  assert.match((await disable.getAttribute("title")) ?? "", /fleet:admin/);
  await page.goto("/audit");
  await page.getByText("The audit is not shown").waitFor();
  assert.deepEqual(posts, []);
});

test("the last admin cannot be disabled or made member, and the page says why; a link for a user is shown once", async (t) => {
  const world = await createWebWorld(t);
  await world.admin.call("userCreate", { body: { name: "bea", role: "member" } });
  const page = await world.signedIn("/people");
  const disable = page.getByRole("button", { name: "Disable admin" });
  await disable.waitFor();
  assert.match((await disable.getAttribute("title")) ?? "", /this is the last admin/);
  assert.match(
    (await page.getByRole("button", { name: "Make admin member" }).getAttribute("title")) ?? "",
    /last admin/,
  );
  await page.getByRole("button", { name: "Login link for bea" }).click();
  const secret = (await page.getByRole("dialog").locator("code").textContent()) ?? "";
  assert.match(secret, /\/sign-in#hfl_/);
  await page.keyboard.press("Escape");
  await until("the link is gone with its dialog", async () => !(await page.content()).includes("hfl_"));
  assert.equal(await page.getByRole("dialog").count(), 0);
  const other = await world.open();
  await other.goto(secret);
  await other.getByText("bea").first().waitFor();
  await page.getByRole("button", { name: "Disable bea" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Disable bea" }).click();
  await page.locator(".state").getByText("disabled").waitFor();
  await other.getByRole("button", { name: "Sign in" }).waitFor();
  await until(
    "bea is disabled",
    async () => (await world.admin.call("userList", {})).items.find((user) => user.name === "bea")?.disabledAt,
  );
});

// SPDX-License-Identifier: Apache-2.0
// An agent that upgrades itself, from real bundles: a good release takes over in the same process while its job runs on; one
// that dies, hangs or never comes online is left again and not tried twice. Whoever restarts it here is the service manager.

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { enrolmentOf } from "../../src/bin/artefacts.ts";
import { openFleet } from "../../src/bin/fleet.ts";
import type { Enrolment } from "../../src/controller/enrolment.ts";
import { readRelease } from "../../src/enrol/release.ts";
import { systemClock } from "../../src/std/clock.ts";
import { readProcessStat } from "../../src/std/process.ts";
import { ensureBundle } from "../../tools/bundle.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";

const checkout = fileURLToPath(new URL("../..", import.meta.url));

type Site = {
  readonly directory: string;
  readonly root: string;
  readonly enrolment: Enrolment;
  /** From now on the controller hands out this tree; returns its name. */
  readonly publish: (version: string, change: (tree: string) => void) => string;
};

/** An installation as the bootstrap script leaves it, and the place where a controller finds what it hands out. */
async function createSite(t: TestContext): Promise<Site> {
  ensureBundle(process.arch);
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "hf-upgrade-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  const bundle = path.join(checkout, `dist/agent-linux-${process.arch}.tar.gz`);
  const installed = path.join(directory, "installed");
  fs.mkdirSync(installed);
  execFileSync("tar", ["-xzf", bundle, "-C", installed]);
  fs.renameSync(path.join(installed, "holdfast"), path.join(installed, "agent"));
  const sha256 = createHash("sha256").update(fs.readFileSync(bundle)).digest("hex");
  fs.writeFileSync(path.join(installed, "agent.sha256"), `${sha256}\n`);
  let handedOut = { file: bundle, sha256 };
  const fleet = await openFleet(path.join(directory, "controller"), systemClock);
  const served = enrolmentOf({ fleet, tls: { kind: "off" }, served: () => undefined });
  return {
    directory,
    root: path.join(directory, "root"),
    enrolment: { ...served, agent: async () => handedOut },
    publish: (version, change) => {
      const tree = path.join(directory, "tree");
      fs.rmSync(tree, { recursive: true, force: true });
      fs.cpSync(path.join(installed, "agent"), path.join(tree, "holdfast"), { recursive: true });
      const manifest = path.join(tree, "holdfast/package.json");
      const text = fs.readFileSync(manifest, "utf8");
      fs.writeFileSync(manifest, text.replace(/"version": "[^"]+"/, `"version": "${version}"`));
      change(path.join(tree, "holdfast"));
      const file = path.join(directory, `${version}.tar.gz`);
      execFileSync("tar", ["-czf", file, "-C", tree, "holdfast"]);
      handedOut = { file, sha256: createHash("sha256").update(fs.readFileSync(file)).digest("hex") };
      return handedOut.sha256;
    },
  };
}

type Fleet = {
  readonly world: World;
  readonly said: () => string;
  readonly start: (trialMs: number) => ChildProcess;
  readonly online: (version: string) => Promise<unknown>;
};

/** A controller that hands out what the site has, and whoever starts the installed agent on it. */
async function createFleet(t: TestContext, site: Site): Promise<Fleet> {
  const world = await createWorld(t, { heartbeatMs: 200 }, { enrolment: site.enrolment });
  const { code } = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  const agents: ChildProcess[] = [];
  cleanupOf(t).defer(() => agents.forEach((agent) => void agent.kill("SIGKILL")));
  let said = "";
  const start = (trialMs: number): ChildProcess => {
    const program = path.join(site.directory, "installed/agent/src/bin/holdfast.js");
    const argv = [program, "agent", "--root", site.root, "--join", world.url, "--self-upgrade", "--on-stop", "leave"];
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOLDFAST_PAIRING_CODE: code,
      HOLDFAST_TRIAL_MS: String(trialMs),
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "",
    };
    const agent = spawn(process.execPath, argv, { stdio: ["ignore", "ignore", "pipe"], env });
    agent.stderr.on("data", (piece: Buffer) => (said += piece.toString()));
    agents.push(agent);
    return agent;
  };
  const isOnline = async (version: string): Promise<boolean> => {
    if (agents.at(-1)?.exitCode !== null) assert.fail(said);
    const [node] = (await world.admin.call("nodeList", {})).items;
    return node?.online === true && node.facts?.version === version;
  };
  const online = (version: string) =>
    until(`the node is online with ${version}`, () => isOnline(version), { withinMs: 60_000 }).catch((error: unknown) =>
      assert.fail(`${String(error)}\n${said}`),
    );
  return { world, said: () => said, start, online };
}

test("an agent takes the release that its controller hands out in the same process, its job runs on; one that dies, hangs or is never online is left again", async (t) => {
  const site = await createSite(t);
  const { world, said, start, online } = await createFleet(t, site);
  const state = () => readRelease(site.root).state;
  const installed =
    /"version": "([^"]+)"/.exec(fs.readFileSync(path.join(checkout, "package.json"), "utf8"))?.[1] ?? "";

  let agent = start(60_000);
  await online(installed);
  const job = await world.admin.call("jobSubmit", { body: { command: ["sh", "-c", "echo $$; exec sleep 600"] } });
  const pid = await until("the job says its pid", async () => {
    const { chunks } = await world.admin.call("jobLogs", { params: { jobId: job.id } });
    return Number(chunks[0]?.text.trim());
  });
  const [before, agentBefore] = [readProcessStat(pid), readProcessStat(agent.pid ?? 0)];
  const good = site.publish("0.9.0", () => {});
  await online("0.9.0");
  await until("its trial is over", () => state().trial === null);
  assert.equal(state().current, good);
  assert.deepEqual(readProcessStat(pid)?.startTicks, before?.startTicks, "the job is another process");
  assert.deepEqual(
    readProcessStat(agent.pid ?? 0)?.startTicks,
    agentBefore?.startTicks,
    "the agent is another process",
  );

  // Long enough for the good one on any machine; what is broken has not to be waited for.
  const stopped = new Promise((resolve) => agent.once("exit", resolve));
  agent.kill("SIGTERM");
  assert.equal(await stopped, 0);
  agent = start(2_000);
  await online("0.9.0");
  const breaks = {
    "0.9.1": "process.exit(3);",
    "0.9.2": "for (;;);",
    "0.9.3": "await new Promise((resolve) => setTimeout(resolve, 1e9));",
  };
  for (const [version, fault] of Object.entries(breaks)) {
    const ended = new Promise<void>((resolve) => agent.once("exit", () => resolve()));
    const bad = site.publish(version, (tree) => {
      const file = path.join(tree, "src/bin/holdfast.ts");
      fs.writeFileSync(file, `${fault}\n${fs.readFileSync(file, "utf8")}`);
    });
    await ended;
    assert.deepEqual([state().current, state().trial], [bad, { starts: 1 }], said());
    agent = start(2_000);
    await online("0.9.0");
    assert.equal(state().current, good);
    assert.ok(state().failed.includes(bad));
  }
  // It is asked with every heartbeat, and refuses each time without a word more.
  assert.equal(said().match(/hands out another release: fetching it/g)?.length, 4, said());
  assert.deepEqual(readProcessStat(pid)?.startTicks, before?.startTicks);
  assert.equal((await world.admin.call("jobShow", { params: { jobId: job.id } })).attempt, 1);
  await world.admin.call("jobCancel", { params: { jobId: job.id } });
  await until("the job is cancelled", async () => {
    return (await world.admin.call("jobShow", { params: { jobId: job.id } })).state === "cancelled";
  });
  agent.kill("SIGTERM");
});

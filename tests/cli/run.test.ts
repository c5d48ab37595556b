// SPDX-License-Identifier: Apache-2.0
// job run against a real controller with a node driven by hand: the job's output exactly, its exit code, interrupts, and what
// happens when an answer or the controller is lost.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { type TestContext, test } from "node:test";
import type { Home, Running } from "../kit/command.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import type { NodeDouble } from "../kit/node-double.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";
import { homeOf } from "./kit.ts";

type Scene = {
  readonly world: World;
  readonly home: Home;
  readonly anna: NodeDouble;
  readonly run: Running;
  readonly id: string;
  readonly epoch: string;
};

/** A job that `job run` follows and that anna has just begun to run. */
async function running(t: TestContext): Promise<Scene> {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const anna = await world.node("anna");
  const run = home.start(["job", "run", "--", "x"]);
  const job = await until("the job is claimed", async () => (await anna.claim(1))[0]);
  await anna.start(job.jobId, job.epoch);
  return { world, home, anna, run, id: job.jobId, epoch: job.epoch };
}

test("both streams arrive exactly and the exit code is the job's own", async (t) => {
  const { anna, run, id, epoch } = await running(t);
  await until("it is told where it runs", () => run.stderr().includes("running on anna"));
  await anna.log(id, epoch, { offset: 0, text: "no newline, an emoji 😀, a tab\t" });
  await until("output is passed on while the job runs", () => run.stdout().includes("emoji"));
  await anna.log(id, epoch, { offset: 0, text: "problem\n", stream: "stderr" });
  await anna.end(id, epoch, { exitCode: 7 });
  assert.equal(await ended(run), 7);
  assert.equal(run.stdout(), "no newline, an emoji 😀, a tab\t");
  assert.match(run.stderr(), new RegExp(`^· ${id} queued\n`));
  assert.match(run.stderr(), /^problem$/m);
  assert.match(run.stderr(), /failed: exit code 7/);
});

test("a job that a signal ended exits as a shell would say it", async (t) => {
  const { anna, run, id, epoch } = await running(t);
  const ending = { jobId: id, epoch, stopped: null, startedAt: null, endedAt: null, message: null };
  await anna.client.call("nodeEnding", {
    body: { sessionId: anna.sessionId, ending: { ...ending, outcome: { kind: "signalled", signal: "SIGKILL" } } },
  });
  assert.equal(await ended(run), 137);
  assert.match(run.stderr(), /SIGKILL/);
});

test("a job that no node can run is said to be blocked, with the reason", async (t) => {
  const world = await createWorld(t);
  await world.node("anna");
  const run = homeOf(t, world).start(["job", "run", "--memory", "900GiB", "--", "x"]);
  await until("the reason is told", () => /blocked: .*900/.test(run.stderr()));
  run.process.kill("SIGINT");
  assert.equal(await ended(run), 130);
});

test("the first interrupt cancels the job and waits for its end", async (t) => {
  const { anna, run, id, epoch } = await running(t);
  run.process.kill("SIGINT");
  await until("the node is told to cancel", async () => (await anna.renew(id, epoch)).cancel.length === 1);
  assert.equal(run.process.exitCode, null, "it waits until the job has ended");
  await anna.end(id, epoch, { exitCode: 143, stopped: "cancel" });
  assert.equal(await ended(run), 130);
  assert.match(run.stderr(), /cancelling job_/);
  assert.match(run.stderr(), /cancelled/);
});

test("an interrupt while the job is being submitted cancels it as soon as it is known", async (t) => {
  const world = await createWorld(t);
  const late = Promise.withResolvers<void>();
  const proxy = await troublingFirstAnswer(t, world.url, late.promise);
  const run = homeOf(t, world).start(["job", "run", "--", "x"], { HOLDFAST_URL: proxy.url });
  await until("the submission has arrived", () => proxy.posts() > 0);
  run.process.kill("SIGINT");
  await until("it is taken", () => run.stderr().includes("cancelling it once it is submitted"));
  late.resolve();
  assert.equal(await ended(run), 130);
  const { items } = await world.admin.call("jobList", {});
  assert.deepEqual(
    items.map(({ state }) => state),
    ["cancelled"],
  );
});

test("a second interrupt leaves at once, and the job is still being cancelled", async (t) => {
  const { world, run, id } = await running(t);
  run.process.kill("SIGINT");
  await until("the first was taken", () => run.stderr().includes("cancelling"));
  await until(
    "the cancel has arrived",
    async () => (await world.admin.call("jobShow", { params: { jobId: id } })).cancelRequested,
  );
  const taken = performance.now();
  await until("it is no echo of the first one any more", () => performance.now() - taken > 300);
  run.process.kill("SIGINT");
  assert.equal(await ended(run), 130);
  assert.equal((await world.admin.call("jobShow", { params: { jobId: id } })).state, "running");
});

test("a controller that went away and came back costs no output and repeats none", async (t) => {
  const { world, anna, run, id, epoch } = await running(t);
  await anna.log(id, epoch, { offset: 0, text: "before\n" });
  await until("the first line is there", () => run.stdout() === "before\n");
  await world.stopController();
  await until("it says that it waits", () => run.stderr().includes("the controller is away"));
  await world.startController();
  await anna.log(id, epoch, { offset: 7, text: "after\n" });
  await anna.end(id, epoch);
  assert.equal(await ended(run), 0);
  assert.equal(run.stdout(), "before\nafter\n");
});

test("a submission whose answer was lost is sent again and makes one job", async (t) => {
  const world = await createWorld(t);
  const proxy = await troublingFirstAnswer(t, world.url);
  const sent = await homeOf(t, world).run(["job", "submit", "--", "true"], { HOLDFAST_URL: proxy.url });
  assert.equal(sent.code, 0, sent.stderr);
  assert.equal(proxy.posts(), 2);
  const { items } = await world.admin.call("jobList", {});
  assert.deepEqual(
    items.map((job) => job.id),
    [sent.stdout.trim()],
  );
});

/** Its exit code; fails after a deadline instead of waiting for ever. */
async function ended(run: Running): Promise<number | string> {
  await until("job run ends", () => run.process.exitCode !== null || run.process.signalCode !== null);
  return run.ended;
}

function pass(answer: http.IncomingMessage, response: http.ServerResponse): void {
  response.writeHead(answer.statusCode ?? 500, answer.headers);
  answer.pipe(response);
}

/** Passes requests on; the first answer is cut after the controller has done its work, or kept back until `late`. */
async function troublingFirstAnswer(t: TestContext, target: string, late?: Promise<void>) {
  let posts = 0;
  const server = http.createServer((request, response) => {
    posts++;
    const isFirst = posts === 1;
    const { hostname, port } = new URL(target);
    const onward = http.request(
      { hostname, port, method: request.method, path: request.url, headers: request.headers },
      (answer) => {
        if (isFirst && late === undefined) {
          answer.resume().on("end", () => request.socket.destroy());
          return;
        }
        void (isFirst ? late : undefined)?.then(() => pass(answer, response));
        if (!isFirst) pass(answer, response);
      },
    );
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanupOf(t).defer(async () => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return { url: `http://127.0.0.1:${address.port}`, posts: () => posts };
}

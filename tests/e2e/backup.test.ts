// SPDX-License-Identifier: Apache-2.0
// A backup is one moment of the database, also under load; a restore brings every row back and gives no epoch twice.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { createHome, type Home } from "../kit/command.ts";
import {
  backUp,
  enrol,
  type Enrolled,
  restore,
  serve,
  type Served,
  stop,
  withDatabase,
  withSql,
} from "../kit/embedded-home.ts";
import { NodeDouble } from "../kit/node-double.ts";
import { tableLines } from "../kit/table-lines.ts";
import { until } from "../kit/until.ts";
import { assertLedgers } from "../kit/world.ts";

/** Jobs from submission to end, log included, until the signal aborts. */
async function work(served: Served, name: string, signal: AbortSignal): Promise<void> {
  const node = new NodeDouble({ baseUrl: served.url, ...(await enrol(served, name)) });
  await node.hello();
  while (!signal.aborted) {
    for (let count = 0; count < 4; count++) await served.admin.call("jobSubmit", { body: { command: ["true"] } });
    await Promise.all(
      (await node.claim(4)).map(async ({ jobId, epoch }) => {
        await node.start(jobId, epoch);
        await node.log(jobId, epoch, { offset: 0, text: `out of ${jobId}\n` });
        await node.end(jobId, epoch);
      }),
    );
  }
}

test("a backup under load holds one moment: ledgers are gap-free, logs are whole, and nothing is cut", async (t) => {
  const home = createHome(t);
  const served = await serve(home);
  const ended = new AbortController();
  const load = Promise.all(["a", "b", "c"].map((name) => work(served, name, ended.signal)));
  const first = await until("jobs run", async () =>
    (await served.admin.call("overview", {})).jobs.succeeded > 30 ? backUp(home, "one") : undefined,
  );
  const second = await backUp(home, "two");
  ended.abort();
  await load;
  assert.ok(second.summary.rows > first.summary.rows, "the load went on meanwhile");
  await stop(served);
  for (const { directory, summary } of [first, second]) {
    fs.rmSync(path.join(home.root, "database"), { recursive: true });
    const restored = await restore(home, directory);
    assert.equal(restored.rows, summary.rows);
    await withDatabase(home, (owner) =>
      withSql(owner, async (sql) => {
        await assertLedgers(sql);
        const odd = await sql(
          `select a.job_id from app.attempt a where a.log_number <> (select count(*) from app.job_log l where l.job_id = a.job_id)
           union all select j.id from app.job j where not exists (select from app.job_body b where b.job_id = j.id)`,
        );
        assert.deepEqual(odd, []);
      }),
    );
  }
  const rowsOf = (name: string): number => first.summary.tables.find((table) => table.name === name)?.rows ?? 0;
  assert.ok(rowsOf("job") > 30 && rowsOf("job_log") > 30, "the load was in it");
});

/** A browser that is signed in, and a link that nobody has used. */
const SIGNED_IN = `
with one as (select organisation_id, id from app."user" limit 1), linked as (
  insert into app.login_link (organisation_id, id, user_id, hash, expires_at)
  select organisation_id, 'link_1', id, sha256('link'), now() + interval '1 hour' from one
)
insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes, expires_at)
select organisation_id, 'cred_1', 'browser', 'firefox', id, sha256('browser'), '{fleet:read}', now() + interval '1 hour' from one`;

/** What a restore changes on purpose; all else comes back as it was. */
const CHANGED = ["job", "job_event", "attempt", "pairing_code", "audit", "credential", "login_link"];

type Staged = {
  readonly home: Home;
  readonly enrolled: Enrolled;
  readonly sessionId: string;
  readonly leases: readonly { readonly jobId: string; readonly epoch: string }[];
  readonly jobs: {
    readonly done: string;
    readonly running: string;
    readonly cancelled: string;
    readonly waiting: string;
  };
  /** Every row, when nothing ran any more. */
  readonly before: Record<string, readonly string[]>;
  readonly directory: string;
};

/** A job in each state that matters, then a backup with nothing running. */
async function stage(t: TestContext): Promise<Staged> {
  const home = createHome(t);
  const served = await serve(home);
  const enrolled = await enrol(served, "one");
  const node = new NodeDouble({ baseUrl: served.url, ...enrolled });
  await node.hello();
  const submit = async (command: string): Promise<string> =>
    (await served.admin.call("jobSubmit", { body: { command: [command] } })).id;
  const done = await submit("done");
  const [first] = await node.claim(1);
  assert.ok(first !== undefined);
  await node.start(done, first.epoch);
  await node.log(done, first.epoch, { offset: 0, text: "tab\t, backslash \\, newline\n, 'quote', ü, \u0001\n\\.\n" });
  await node.end(done, first.epoch, { result: { text: "a\\b\n\tc", list: [1.5, null] } });
  const [running, cancelled] = [await submit("running"), await submit("cancelled")];
  const leases = await node.claim(2);
  for (const { jobId, epoch } of leases) assert.equal(await node.start(jobId, epoch), "done");
  await served.admin.call("jobCancel", { params: { jobId: cancelled } });
  const waiting = await submit("waiting");
  await served.admin.call("pairingCreate", { body: { name: "two" } });
  await stop(served);
  let before: Record<string, readonly string[]> = {};
  await withDatabase(home, async (owner) => {
    await withSql(owner, (sql) => sql(SIGNED_IN).then(() => {}));
    before = await tableLines(owner);
  });
  const { directory } = await backUp(home, "backup");
  const jobs = { done, running, cancelled, waiting };
  return { home, enrolled, sessionId: node.sessionId, leases, jobs, before, directory };
}

test("after a restore every row is there, jobs that had not ended wait again, and what invites people is void", async (t) => {
  const { home, jobs, before, directory } = await stage(t);
  assert.equal(fs.statSync(directory).mode & 0o777, 0o700);
  for (const file of fs.readdirSync(directory))
    assert.equal(fs.statSync(path.join(directory, file)).mode & 0o777, 0o600);
  fs.rmSync(path.join(home.root, "database"), { recursive: true });
  const summary = await restore(home, directory);
  assert.deepEqual([summary.jobs, summary.returned, summary.cancelled], [3, 1, 1]);
  await withDatabase(home, async (owner) => {
    const after = await tableLines(owner);
    for (const [table, lines] of Object.entries(before))
      if (!CHANGED.includes(table)) assert.deepEqual(after[table], lines, table);
    const lost = CHANGED.flatMap((table) => (before[table] ?? []).filter((line) => !after[table]?.includes(line)));
    assert.deepEqual(
      lost.filter((line) => line.includes(jobs.done)),
      [],
      "what had ended is not touched",
    );
    assert.equal(lost.length, 3 + 2 + 3, `3 jobs, 2 attempts, a code, a link, a browser: ${lost.join("\n")}`);
    await withSql(owner, async (sql) => {
      await assertLedgers(sql);
      const rows = await sql(
        "select state, attempt, lease_until, reason from app.job where id = any($1) order by created_at",
        [[jobs.running, jobs.cancelled, jobs.waiting]],
      );
      assert.deepEqual(rows, [
        { state: "queued", attempt: 0, lease_until: null, reason: "restored" },
        { state: "cancelled", attempt: 1, lease_until: null, reason: null },
        { state: "queued", attempt: 0, lease_until: null, reason: null },
      ]);
      assert.deepEqual(await sql("select from app.attempt where ended_at is null"), []);
      assert.deepEqual(await sql("select from app.pairing_code where used_at is null and expires_at > now()"), []);
      assert.deepEqual(await sql("select from app.login_link where used_at is null and expires_at > now()"), []);
      const revoked = await sql("select kind from app.credential where revoked_at is not null");
      assert.deepEqual(revoked, [{ kind: "browser" }]);
      const audited = await sql("select actor from app.audit where action = 'database.restore'");
      assert.deepEqual(audited, [{ actor: "controller" }]);
    });
  });
});

test("P3: after a restore a lease of before is stale, its job runs again, and no epoch is given twice", async (t) => {
  const { home, enrolled, sessionId, leases, jobs, directory } = await stage(t);
  const { running } = jobs;
  fs.rmSync(path.join(home.root, "database"), { recursive: true });
  await restore(home, directory);
  const served = await serve(home);
  const node = new NodeDouble({ baseUrl: served.url, ...enrolled });
  node.sessionId = sessionId;
  const old = leases.find(({ jobId }) => jobId === running);
  assert.ok(old !== undefined);
  assert.equal((await node.renew(running, old.epoch)).verdict, "stale_epoch");
  assert.equal(await node.end(running, old.epoch), "stale_epoch");
  await node.hello();
  const again = await until("the job is claimed again", async () =>
    (await node.claim(2)).find(({ jobId }) => jobId === running),
  );
  assert.ok(BigInt(again.epoch) > BigInt(old.epoch) + 1_000_000n);
  await node.start(running, again.epoch);
  assert.equal(await node.end(running, again.epoch), "done");
  const { events } = await served.admin.call("jobEvents", { params: { jobId: running } });
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ["created", "claimed", "started", "restored", "claimed", "started", "succeeded"],
  );
  await stop(served);

  // The same backup once more: what the first life after it gave is not given again.
  fs.rmSync(path.join(home.root, "database"), { recursive: true });
  await restore(home, directory);
  await withDatabase(home, (owner) =>
    withSql(owner, async (sql) => {
      const [job] = await sql<{ epoch: string }>("select epoch from app.job where id = $1", [running]);
      assert.ok(BigInt(job?.epoch ?? 0) > BigInt(again.epoch), "a second restore goes beyond the first");
    }),
  );
});

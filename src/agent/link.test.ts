// SPDX-License-Identifier: Apache-2.0
// Claims about the way to the controller: what is retried, what ends the agent, and that each is said once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../client/client.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { type Log, silentLog } from "../std/log.ts";
import { systemRandom } from "../std/random.ts";
import { Link } from "./link.ts";

const impatient: Clock = { ...systemClock, sleep: () => Promise.resolve() };
const refusal = (status: number, code: string) => () =>
  Response.json({ code, message: code, requestId: "r" }, { status });
const broken = () => {
  throw new TypeError("connection reset");
};
const healthy = () => Response.json({ status: "ok", version: "1" });

function linkOver(answers: (() => Response)[]): { readonly link: Link; readonly lines: string[] } {
  const lines: string[] = [];
  const note = (_: unknown, message: string): void => void lines.push(message);
  const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
  const client = createClient({ baseUrl: "http://c.test", fetch: async () => (answers.shift() ?? healthy)() });
  return { link: new Link({ client, clock: impatient, random: systemRandom, log }), lines };
}

const signal = new AbortController().signal;

test("no contact, 5xx, rate limits and foreign answers are waited out, said once at each end", async () => {
  const foreign = () => new Response("<html>502</html>", { status: 502 });
  const { link, lines } = linkOver([
    broken,
    broken,
    refusal(500, "internal"),
    refusal(503, "stopping"),
    refusal(429, "rate_limited"),
    foreign,
  ]);
  assert.equal((await link.call("health", {}, { signal })).status, "ok");
  assert.equal(lines.length, 2, lines.join());
});

test("a lost right is said once, ends all calls, and none is tried again", async () => {
  for (const code of ["unauthenticated", "forbidden", "node_retired", "session_superseded"]) {
    const { link, lines } = linkOver([refusal(401, code), refusal(401, code)]);
    await assert.rejects(link.call("health", {}, { signal }), { code });
    await assert.rejects(link.call("health", {}, { signal }), { code });
    assert.ok(link.refused.aborted);
    assert.deepEqual(lines, ["the controller refuses this node"]);
  }
});

test("a request that is wrong is its caller's to handle and not tried again", async () => {
  const { link } = linkOver([refusal(400, "invalid_request")]);
  await assert.rejects(link.call("health", {}, { signal }), { code: "invalid_request" });
  assert.ok(!link.refused.aborted);
});

test("an input that ages is made anew for each try", async () => {
  let made = 0;
  const { link } = linkOver([broken, broken]);
  await link.call("health", async () => ({ query: void made++ }) as object, { signal });
  assert.equal(made, 3);
});

test("D38: what one route says of the credential is asked at one other route, once for all who heard it", async () => {
  const asked: string[] = [];
  const fetching = (word: () => Response) => async (input: string | URL | Request) => {
    const { pathname } = new URL(input instanceof Request ? input.url : String(input));
    asked.push(pathname);
    if (pathname.endsWith("/renewals")) return word();
    return asked.filter((each) => each === pathname).length <= 2 ? refusal(401, "unauthenticated")() : healthy();
  };
  const linkWith = (word: () => Response): Link => {
    const client = createClient({ baseUrl: "http://c.test", fetch: fetching(word) });
    return new Link({ client, clock: impatient, random: systemRandom, log: silentLog });
  };
  // It is good: the route is asked again until it has come to its senses, and nothing ends.
  const good = linkWith(refusal(409, "session_superseded"));
  const replies = await Promise.all([good.call("health", {}, { signal }), good.call("health", {}, { signal })]);
  assert.deepEqual(
    replies.map(({ status }) => status),
    ["ok", "ok"],
  );
  assert.ok(!good.refused.aborted);
  assert.equal(asked.filter((each) => each.endsWith("/renewals")).length, 1);
  // It is not: the authority's word ends the agent.
  asked.length = 0;
  const bad = linkWith(refusal(403, "node_retired"));
  await assert.rejects(bad.call("health", {}, { signal }), { code: "node_retired" });
  assert.ok(bad.refused.aborted);
});

// SPDX-License-Identifier: Apache-2.0
// The client's types follow the route table; an answer that is not ours is said to be not ours.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { createClient } from "./client.ts";

test("the input of a route is checked by type: what the table declares is demanded, the rest refused", () => {
  const client = createClient({ baseUrl: "http://127.0.0.1:1" });
  const check = async (): Promise<void> => {
    // @ts-expect-error: jobShow needs params
    await client.call("jobShow", {});
    // @ts-expect-error: jobSubmit needs a body
    await client.call("jobSubmit", {});
    // @ts-expect-error: health takes no body
    await client.call("health", { body: {} });
    const job = await client.call("jobShow", { params: { jobId: "job_x" } });
    // @ts-expect-error: no such field
    await Promise.resolve(job.nothing);
  };
  assert.equal(typeof check, "function");
});

test("an address where something else answers is named as such, and one where nothing answers as unreachable", async (t) => {
  const server = createServer((_, response) => response.end("<html>hello</html>"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const baseUrl = `http://127.0.0.1:${address.port}`;
  await assert.rejects(createClient({ baseUrl }).call("health", {}), { code: "bad_answer" });
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(createClient({ baseUrl }).call("health", {}), { code: "controller_unreachable" });
  t.diagnostic("both answers were refused");
});

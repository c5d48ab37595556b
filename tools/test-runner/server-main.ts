// SPDX-License-Identifier: Apache-2.0
// The PostgreSQL of a test run, in a process of its own: tests/kit registers hooks with node:test when it is loaded, which
// the runner must not. Sends the environment for the tests once it is up; ends when the runner lets go, however that happens.

import process from "node:process";
import { startTestServer } from "../../tests/kit/database.ts";

const released = new Promise<void>((resolve) => process.once("disconnect", resolve));
{
  await using server = await startTestServer();
  process.send?.(server.env);
  await released;
}
// node:test would print a summary of no tests, and wait for it.
process.exit(0);

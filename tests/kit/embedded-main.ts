// SPDX-License-Identifier: Apache-2.0
// A program that starts an embedded server on the root of its argument, writes a row and waits to be killed.

import pg from "pg";
import { startEmbedded } from "../../src/db/embedded.ts";
import { silentLog } from "../../src/std/log.ts";

const server = await startEmbedded({ root: process.argv[2] ?? "", log: silentLog });
const client = new pg.Client(server.owner);
await client.connect();
await client.query("create table kept (n int); insert into kept values (1)");
await client.end();
process.stdout.write("ready\n");
setInterval(() => {}, 60_000);

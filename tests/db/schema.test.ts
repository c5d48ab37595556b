// SPDX-License-Identifier: Apache-2.0
// The committed image of the schema is what the migrations make.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import pg from "pg";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase } from "../kit/database.ts";
import { schemaImage } from "../kit/schema-image.ts";

test("migrations/schema.sql is what the migrations make; when it is stale, run npm run schema and read the difference", async (t) => {
  const { owner } = await createTestDatabase(t);
  const client = new pg.Client(owner);
  await client.connect();
  cleanupOf(t).defer(() => client.end());
  const committed = fs.readFileSync(new URL("../../migrations/schema.sql", import.meta.url), "utf8");
  assert.equal(await schemaImage(client), committed);
});

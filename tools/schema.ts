// SPDX-License-Identifier: Apache-2.0
// Writes migrations/schema.sql: the schema after all migrations, for reading. Usage: npm run schema

import fs from "node:fs";
import pg from "pg";
import { migrate } from "../src/db/migrate.ts";
import { migrations, startTestServer } from "../tests/kit/database.ts";
import { schemaImage } from "../tests/kit/schema-image.ts";

await using server = await startTestServer();
const connection = { host: server.socketDirectory, user: "holdfast_owner", database: "holdfast" };
await migrate(connection, migrations);
const client = new pg.Client(connection);
await client.connect();
fs.writeFileSync(new URL("../migrations/schema.sql", import.meta.url), await schemaImage(client));
await client.end();

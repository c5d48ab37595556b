// SPDX-License-Identifier: Apache-2.0
// A program that migrates the database of its argument, for tests that kill it in the middle. Says when it begins.

import { migrate } from "../../src/db/migrate.ts";
import { migrations } from "./database.ts";

process.stdout.write("begins\n");
await migrate(JSON.parse(process.argv[2] ?? "{}") as { host: string; user: string; database: string }, migrations);

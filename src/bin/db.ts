// SPDX-License-Identifier: Apache-2.0
// `holdfast db migrate | status`: on the database that DATABASE_OWNER_URL (else DATABASE_URL) names.

import { migrate, migrationStatus } from "../db/migrate.ts";
import { connectionsFrom, migrations } from "./database.ts";
import type { Environment } from "./settings.ts";

export async function dbMigrate(env: Environment): Promise<readonly string[]> {
  return migrate(connectionsFrom(env).owner, migrations);
}

export async function dbStatus(env: Environment) {
  return migrationStatus(connectionsFrom(env).owner, migrations);
}

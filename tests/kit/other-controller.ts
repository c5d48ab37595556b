// SPDX-License-Identifier: Apache-2.0
// One more controller on the database of a world, with a way of its own to it.

import type { TestContext } from "node:test";
import type { ControllerConfig } from "../../src/controller/context.ts";
import { type Controller, startController } from "../../src/controller/controller.ts";
import { type ConnectionOptions, openDatabase } from "../../src/db/pool.ts";
import { systemClock } from "../../src/std/clock.ts";
import { type Log, silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "./cleanup.ts";
import { fast } from "./world.ts";

export type OtherController = {
  /** For the pool. */
  readonly connection: ConnectionOptions;
  readonly listenConnection?: ConnectionOptions;
  readonly config?: Partial<ControllerConfig>;
  readonly log?: Log;
};

export async function startOther(t: TestContext, options: OtherController): Promise<Controller> {
  const { connection, listenConnection, config, log = silentLog } = options;
  const db = cleanupOf(t).use(openDatabase({ connection, log, clock: systemClock, random: systemRandom }));
  return cleanupOf(t).use(
    await startController({
      db,
      ...(listenConnection === undefined ? {} : { listenConnection }),
      log,
      host: "127.0.0.1",
      port: 0,
      config: { ...fast, ...config },
    }),
  );
}

// SPDX-License-Identifier: Apache-2.0
// What machines and operators ask a controller about itself: does it answer, can it serve, what is wrong, what are the numbers.

import type { Check } from "../../protocol/access-schema.ts";
import { Failure, messageOf } from "../../std/errors.ts";
import type { Context } from "../context.ts";
import type { Handlers } from "../http/reply.ts";
import { readFleetNumbers, readPulse } from "./operation-store.ts";
import { fleetText } from "./fleet-metrics.ts";
import { checkDatabase, checkExpiredLeases, checkListener, checkLoops } from "./checks.ts";

export function operationRoutes(context: Context): Handlers<"health" | "ready" | "checks" | "metrics"> {
  const { db, config } = context;
  return {
    health: () =>
      Promise.resolve({ status: "ok", version: config.version, now: new Date(context.clock.now()).toISOString() }),
    ready: async () => {
      await requireReady(context);
      return { status: "ready", version: config.version };
    },
    checks: async () => ({ checks: await findings(context) }),
    metrics: async ({ caller }) => {
      const numbers = await db.tenant(caller, (tx) => readFleetNumbers(tx, config.heartbeatMs));
      for (const [name, loop] of context.loops) context.metrics.loop(name, loop.last, context.clock.now());
      context.metrics.listener(context.listener.isHeard());
      return `${await context.metrics.registry.metrics()}\n${fleetText(numbers)}`;
    },
  };
}

/** Tells nothing about an organisation: anyone may ask. */
async function requireReady(context: Context): Promise<void> {
  if (context.isStopping()) throw new Failure("not_ready", "the controller is stopping");
  try {
    await context.db.service(readPulse);
  } catch (error) {
    throw new Failure("not_ready", "the database does not answer", { cause: error });
  }
  const failing = [...context.loops].filter(([, loop]) => loop.last?.error !== undefined).map(([name]) => name);
  if (failing.length > 0) throw new Failure("not_ready", `the last round of ${failing.join(" and ")} failed`);
}

async function findings(context: Context): Promise<Check[]> {
  const { clock, config } = context;
  const version: Check = {
    name: "controller",
    state: "ok",
    text: `version ${config.version}, up ${Math.round(process.uptime())} s`,
    advice: "",
  };
  const began = clock.monotonicMs();
  try {
    const pulse = await context.db.service(readPulse);
    const tookMs = clock.monotonicMs() - began;
    return [
      version,
      checkDatabase({ pulse, tookMs, now: clock.now() }),
      checkListener(context.listener),
      ...checkLoops(context.loops, config.sweepMs, clock.now()),
      checkExpiredLeases(pulse.oldestExpiredLeaseMs, config),
    ];
  } catch (error) {
    return [
      version,
      {
        name: "database",
        state: "fault",
        text: messageOf(error),
        advice:
          "Look at the log of PostgreSQL and of the controller; everything goes on by itself when it answers again.",
      },
    ];
  }
}

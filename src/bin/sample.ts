// SPDX-License-Identifier: Apache-2.0
// `holdfast sample serve`: the engine runs in this process, so a stop is its exit, at once.

import { SampleServer, type SampleServerOptions } from "../sample/server.ts";
import { systemClock } from "../std/clock.ts";

/** Serves until the signal aborts; then the process is gone with exit code 0, whatever the engine is doing. */
export async function serveSample(options: Omit<SampleServerOptions, "clock">, signal: AbortSignal): Promise<number> {
  signal.addEventListener("abort", () => process.exit(0));
  if (signal.aborted) return 0;
  const began = systemClock.monotonicMs();
  const server = new SampleServer({ ...options, clock: systemClock });
  const address = await server.listen();
  process.stderr.write(`${options.alias} loads ${options.modelFile}; it listens on ${address}\n`);
  await server.load().catch((error: unknown) => {
    // What listens would keep the process.
    server.close();
    throw error;
  });
  process.stderr.write(`${options.alias} is ready after ${Math.round(systemClock.monotonicMs() - began)} ms\n`);
  return await new Promise<never>(() => {});
}

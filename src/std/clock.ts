// SPDX-License-Identifier: Apache-2.0
// The clock is an argument: nothing outside this file and bin/ reads the time by itself.

export type Clock = {
  /** Wall clock, milliseconds since the epoch. For display and timestamps, never for a lease. */
  now(): number;
  /** Monotonic milliseconds; only differences mean something. */
  monotonicMs(): number;
  /** Resolves after at least ms, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
    }),
};

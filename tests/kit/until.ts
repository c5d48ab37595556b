// SPDX-License-Identifier: Apache-2.0
// Waits for something to become true, by looking: for effects of other processes that nothing signals. Fails after a
// deadline with what was last seen, so that a test never hangs and never sleeps for a guess.

import assert from "node:assert/strict";

const LOOK_EVERY_MS = 10;

export async function until<Seen>(
  what: string,
  look: () => Promise<Seen> | Seen,
  options: { readonly withinMs?: number } = {},
): Promise<NonNullable<Seen>> {
  const deadline = performance.now() + (options.withinMs ?? 20_000);
  let seen: Seen | undefined;
  for (;;) {
    seen = await look();
    if (seen) return seen;
    if (performance.now() > deadline)
      assert.fail(`${what}: not within ${options.withinMs ?? 20_000} ms; last seen: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

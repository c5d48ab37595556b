// SPDX-License-Identifier: Apache-2.0
// One stack of clean-ups for each test, undone in reverse order: what was made last goes first. (t.after runs in the order
// of registration, which takes the database away from under those who still use it.)

/** What a test or a whole file is, as far as this needs it. */
export type Ending = { after(clean: () => Promise<void>): void };

const stacks = new WeakMap<Ending, AsyncDisposableStack>();

export function cleanupOf(t: Ending): AsyncDisposableStack {
  const known = stacks.get(t);
  if (known !== undefined) return known;
  const stack = new AsyncDisposableStack();
  stacks.set(t, stack);
  t.after(() => stack.disposeAsync());
  return stack;
}

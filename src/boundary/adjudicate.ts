// SPDX-License-Identifier: Apache-2.0
// What became of an entry after the agent was away, pure: every entry gets a verdict, from what its launch directory and the
// process table show. Rule: interrupted is said only when nothing of it can still run.

/** What the launcher found for an entry. */
export type Found =
  | { readonly kind: "alive" }
  | { readonly kind: "ended"; readonly outcome: string }
  | { readonly kind: "not-started" }
  /** Its processes are gone and nobody wrote how. */
  | { readonly kind: "interrupted" }
  /** A file of it is not what we write. survivors: what of it still runs. */
  | { readonly kind: "damaged"; readonly survivors: readonly unknown[] }
  /** The leader is gone, and something of its group, session or cgroup still runs. */
  | { readonly kind: "remains" }
  /** There is no launch directory. */
  | { readonly kind: "missing"; readonly survivors: readonly unknown[] };

export type Adjudged =
  | { readonly kind: "adopt" }
  | { readonly kind: "ended"; readonly outcome: string }
  /** It provably never ran: the queue gets the attempt back unused. */
  | { readonly kind: "not-started" }
  | { readonly kind: "interrupted"; readonly why: string }
  /** Looked at again until nothing of it runs. */
  | { readonly kind: "waits" };

export function adjudicate(found: Found): Adjudged {
  if ("survivors" in found && found.survivors.length > 0) return { kind: "waits" };
  switch (found.kind) {
    case "alive":
      return { kind: "adopt" };
    case "ended":
      return { kind: "ended", outcome: found.outcome };
    case "not-started":
      return { kind: "not-started" };
    case "interrupted":
      return { kind: "interrupted", why: "its processes are gone and nobody saw the end" };
    case "damaged":
      return { kind: "interrupted", why: "a file of its launch is damaged" };
    case "remains":
      return { kind: "waits" };
    case "missing":
      return { kind: "interrupted", why: "its launch directory is gone" };
    default:
      return found satisfies never;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Whether an upstream is the model that was asked for, proved by the gateway itself, also when nobody controls it any more:
//   pending ──equal──► proved ──owner or marker wrong──► failed ──equal──► proved
// The owner of the port is looked at for each connection, the marker every MARKER_EVERY_MS. Rule: an answer that is not the
// marker, or a listener that is not the model's, ends the proof at once. A model that is too busy to answer, but provably still
// holds its socket, keeps it.

import { type Backoff, backoffMs } from "../std/backoff.ts";
import type { Clock } from "../std/clock.ts";
import { probeMarker } from "../std/marker.ts";
import type { Random } from "../std/random.ts";
import { Owner } from "./owner.ts";
import type { Upstream } from "./table.ts";

export type ProofState =
  | { readonly kind: "pending"; readonly why: string }
  | { readonly kind: "proved" }
  | { readonly kind: "failed"; readonly why: string };

export const MARKER_EVERY_MS = 5_000;
const PROBE_WITHIN_MS = 5_000;
const RETRY: Backoff = { baseMs: 20, capMs: 1_000 };

export type ProofOptions = {
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly random: Random;
  readonly markerEveryMs?: number;
  readonly probeWithinMs?: number;
  /** Called after each change of the state. */
  readonly onChange: (state: ProofState) => void;
};

export class Proof implements AsyncDisposable {
  readonly #options: ProofOptions;
  readonly #owner: Owner | undefined;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #wake = new AbortController();
  #state: ProofState = { kind: "pending", why: "not looked at yet" };
  #failures = 0;

  constructor(options: ProofOptions) {
    this.#options = options;
    const { identity, address, marker } = options.upstream;
    this.#owner = identity === undefined ? undefined : new Owner(address, identity);
    if (this.#owner === undefined && marker === undefined) this.#state = { kind: "proved" };
    this.#ended = this.#state.kind === "proved" ? Promise.resolve() : this.#run();
  }

  get state(): ProofState {
    return this.#state;
  }

  /** Looks at the owner, for a connection of this moment. */
  isProvedNow(): boolean {
    if (this.#state.kind !== "proved") return false;
    const looked = this.#owner?.look();
    if (looked?.kind !== "not-ours") return true;
    this.#set({ kind: "failed", why: looked.why });
    this.nudge();
    return false;
  }

  /** Has everything looked at again now. */
  nudge(): void {
    this.#wake.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await this.#ended;
    this.#owner?.[Symbol.dispose]();
  }

  async #run(): Promise<void> {
    const { clock, random, markerEveryMs = MARKER_EVERY_MS } = this.#options;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      const next = await this.#look();
      if (this.#stop.signal.aborted) return;
      this.#failures = next.kind === "proved" ? 0 : this.#failures + 1;
      this.#set(next);
      const waitMs = next.kind === "proved" ? markerEveryMs : backoffMs(RETRY, this.#failures, random);
      await clock.sleep(waitMs, this.#wake.signal);
    }
  }

  async #look(): Promise<ProofState> {
    const { upstream, clock, probeWithinMs = PROBE_WITHIN_MS } = this.#options;
    const before = this.#owner?.lookFully();
    if (before?.kind === "not-ours") return { kind: "failed", why: before.why };
    if (upstream.marker === undefined) return { kind: "proved" };
    const began = clock.monotonicMs();
    const probed = await probeMarker(upstream.address, upstream.marker, probeWithinMs);
    if (this.#stop.signal.aborted) return this.#state;
    const after = this.#owner?.look();
    if (after?.kind === "not-ours") return { kind: "failed", why: after.why };
    if (probed.kind === "equal") return { kind: "proved" };
    if (probed.kind === "other") {
      const found = probed.found === undefined ? "nothing" : JSON.stringify(probed.found);
      return { kind: "failed", why: `the marker is ${found}, not ${JSON.stringify(upstream.marker.value)}` };
    }
    const isBusy = clock.monotonicMs() - began >= probeWithinMs - 1 && after !== undefined;
    if (isBusy && this.#state.kind === "proved") return this.#state;
    return { kind: "failed", why: `the marker was not told: ${probed.why}` };
  }

  #set(state: ProofState): void {
    const before = this.#state;
    this.#state = state;
    if (before.kind !== state.kind) this.#options.onChange(state);
  }
}

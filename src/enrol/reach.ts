// SPDX-License-Identifier: Apache-2.0
// Looks at a controller before anything is entrusted to it: whether it still takes this node's credential, and whether the
// clocks are close enough for certificates and codes to mean the same on both sides.

import { createClient } from "../client/client.ts";
import type { Clock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { whyRefused } from "./enrol.ts";
import { loadCredential } from "./node-key.ts";

/** Further off than this, certificates and codes fail in ways that name something else. */
const CLOCK_OFF_MAX_MS = 10 * 60_000;
const REACH_WITHIN_MS = 8_000;

/** The controller's refusal when it does not know this node (any more); that it cannot be asked is none. */
export async function whyNotPaired(root: string, url: string): Promise<unknown> {
  const credential = loadCredential(root);
  if (credential === undefined) return new Failure("not_paired", "this machine holds no credential");
  const refusal = await whyRefused(url, credential);
  return ["unauthenticated", "node_retired"].includes(codeOf(refusal)) ? refusal : undefined;
}

/** A unit may carry its code for ever: it is used only when the controller does not know this node (any more). */
export async function isStillPaired(root: string, url: string): Promise<boolean> {
  return (await whyNotPaired(root, url)) === undefined;
}

export async function requireClock(url: string, clock: Clock): Promise<void> {
  let date: string | null = null;
  const reading: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    date = response.headers.get("date");
    return response;
  };
  try {
    await createClient({ baseUrl: url, fetch: reading }).call("health", {}, { timeoutMs: REACH_WITHIN_MS });
  } catch (error) {
    if (/not yet valid|has expired|CERT_/.test(messageOf(error)))
      throw clockOff(url, `its certificate is not good by this machine's clock: ${messageOf(error)}`, clock, error);
    throw error;
  }
  const told = date === null ? Number.NaN : Date.parse(date);
  const offMs = clock.now() - told;
  if (Number.isNaN(told) || Math.abs(offMs) < CLOCK_OFF_MAX_MS) return;
  const minutes = Math.round(Math.abs(offMs) / 60_000);
  throw clockOff(url, `it is ${minutes} minutes ${offMs > 0 ? "ahead of" : "behind"} the controller`, clock);
}

function clockOff(url: string, why: string, clock: Clock, cause?: unknown): Failure {
  const now = new Date(clock.now()).toISOString();
  return new Failure("clock_off", `the clock of this machine says ${now}, and for ${url} ${why}`, { cause });
}

// SPDX-License-Identifier: Apache-2.0
// That a controller has refused this node's credential, kept beside it: a supervisor that starts the agent again and again then
// asks the controller a few times an hour and not every second. Rule: the credential itself stays; a note about another one
// says nothing.

import path from "node:path";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { readOrEmpty } from "../std/files.ts";
import { credentialHash, nodeDirectory } from "./node-key.ts";
import { writePrivateFile } from "./private-file.ts";

/** With one question at each end: at most six an hour. */
export const ASK_AGAIN_MS = 10 * 60_000;
const REFUSALS = ["unauthenticated", "forbidden", "node_retired"];

/** What the agent ends with: the refusal in words that name the way out. Another reason to end is returned as it is. */
export function needsPairing(reason: unknown): unknown {
  if (!REFUSALS.includes(codeOf(reason))) return reason;
  return new Failure(
    "needs_pairing",
    `needs re-pairing: its credential is not accepted any more (${messageOf(reason)})`,
    {
      cause: reason,
    },
  );
}

function fileOf(root: string): string {
  return path.join(nodeDirectory(root), "refused.json");
}

export function noteRefusal(root: string, credential: string, reason: unknown, now: number): void {
  if (!REFUSALS.includes(codeOf(reason))) return;
  const note = { credentialHash: credentialHash(credential), at: new Date(now).toISOString(), why: messageOf(reason) };
  writePrivateFile(fileOf(root), `${JSON.stringify(note)}\n`);
}

/** Throws needs_pairing while the note is fresh, without asking anybody. */
export function checkRefusal(root: string, credential: string, now: number): void {
  const known = readNote(root);
  if (known === undefined || known.credentialHash !== credentialHash(credential)) return;
  const at = Date.parse(known.at);
  if (now < at || now - at >= ASK_AGAIN_MS) return;
  throw new Failure(
    "needs_pairing",
    `needs re-pairing: the controller refused this node at ${known.at} (${known.why}); it is not asked again for ten minutes`,
  );
}

type Note = { readonly credentialHash: string; readonly at: string; readonly why: string };

function readNote(root: string): Note | undefined {
  try {
    const { credentialHash: hash, at, why } = JSON.parse(readOrEmpty(fileOf(root))) as Partial<Note>;
    return hash === undefined || at === undefined || why === undefined ? undefined : { credentialHash: hash, at, why };
  } catch {
    return undefined;
  }
}

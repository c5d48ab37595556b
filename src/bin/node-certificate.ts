// SPDX-License-Identifier: Apache-2.0
// Keeps the node's certificate good: node/node.crt under node/authority.pem, for the node's own key. Asked for anew when a
// third of its life is left; what another authority signed, or for another key, is never taken.

import { createPublicKey, type KeyObject } from "node:crypto";
import path from "node:path";
import type { Link } from "../agent/link.ts";
import { nodeDirectory } from "../enrol/node-key.ts";
import { readPrivateFile, writePrivateFile } from "../enrol/private-file.ts";
import { expiryOf, whyNotOurs } from "../sign/certificate.ts";
import type { Clock } from "../std/clock.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";

const LOOK_PERIOD_MS = 6 * 3_600_000;
const RENEW_BEFORE_MS = 30 * 86_400_000;

export type KeptCertificate = {
  readonly root: string;
  readonly key: KeyObject;
  readonly link: Link;
  readonly clock: Clock;
  readonly log: Log;
};

export function keepCertificate(kept: KeptCertificate): Loop {
  const { clock, log } = kept;
  return new Loop({
    name: "certificate",
    periodMs: LOOK_PERIOD_MS,
    clock,
    log,
    round: (signal) => renew(kept, signal),
  });
}

async function renew({ root, key, link, clock, log }: KeptCertificate, signal: AbortSignal): Promise<void> {
  const directory = nodeDirectory(root);
  const [file, authorityFile] = [path.join(directory, "node.crt"), path.join(directory, "authority.pem")];
  const present = readPrivateFile(file);
  if (present !== undefined && isGood(present, clock)) return;
  try {
    const told = await link.call("nodeCertificate", {}, { signal });
    // The first one is believed: it came over the connection that was pinned at the pairing.
    const authority = readPrivateFile(authorityFile) ?? told.authority;
    const why = whyNotOurs(told.certificate, createPublicKey(key), authority);
    if (why !== undefined) {
      log.warn({ why }, "the certificate that the controller sent is not taken");
      return;
    }
    writePrivateFile(authorityFile, authority);
    writePrivateFile(file, told.certificate);
    log.info({ until: new Date(expiryOf(told.certificate)).toISOString() }, "this node has a certificate");
  } catch (error) {
    // A controller without an authority gives none; one that is away is asked again.
    if (codeOf(error) !== "conflict") log.debug({ why: messageOf(error) }, "no certificate yet");
  }
}

function isGood(certificate: string, clock: Clock): boolean {
  try {
    return expiryOf(certificate) - clock.now() > RENEW_BEFORE_MS;
  } catch {
    return false;
  }
}

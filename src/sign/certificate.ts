// SPDX-License-Identifier: Apache-2.0
// Reading certificates: the pin of its key, how long one is still good, and whether a node's is what it should be. Pure.

import { createHash, type KeyObject, X509Certificate } from "node:crypto";

/** As curl's --pinnedpubkey takes it: sha256//BASE64 over the public key. */
export function pinOf(certificatePem: string): string {
  const key = new X509Certificate(certificatePem).publicKey.export({ type: "spki", format: "der" });
  return `sha256//${createHash("sha256").update(key).digest("base64")}`;
}

export function expiryOf(certificatePem: string): number {
  return new X509Certificate(certificatePem).validToDate.getTime();
}

/** Why this is not the certificate of this key under this authority; undefined when it is. */
export function whyNotOurs(certificatePem: string, publicKey: KeyObject, authorityPem: string): string | undefined {
  const certificate = new X509Certificate(certificatePem);
  const authority = new X509Certificate(authorityPem);
  if (!certificate.publicKey.equals(publicKey)) return "it is for another key";
  if (!certificate.checkIssued(authority) || !certificate.verify(authority.publicKey))
    return "it was not signed by the fleet's authority";
  return undefined;
}

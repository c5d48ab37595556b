// SPDX-License-Identifier: Apache-2.0
// The one place where certificates are made: the fleet's own authority, a controller's server certificate and a node's.
// Loaded only when one has to be made. Reading and checking certificates needs node:crypto alone.
// Source: RFC 5280; 397 days for servers is what browsers take (CA/Browser Forum).

import "reflect-metadata";
import { createPrivateKey, generateKeyPairSync, type KeyObject, webcrypto } from "node:crypto";
import net from "node:net";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto as never);

const DAY_MS = 86_400_000;
/** A certificate is good from an hour before it was made: clocks of nodes are not ours. */
const EARLY_MS = 3_600_000;
export const AUTHORITY_LIFE_MS = 3650 * DAY_MS;
export const SERVER_LIFE_MS = 397 * DAY_MS;
export const NODE_LIFE_MS = 90 * DAY_MS;

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

export type Signer = { readonly keyPem: string; readonly certificatePem: string };

export type Subject = {
  readonly commonName: string;
  readonly organisation?: string;
  /** Names and addresses that a server answers under. */
  readonly hosts?: readonly string[];
  /** Names the node for whoever checks its certificate. */
  readonly uri?: string;
};

export function makeP256Key(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Self-signed; may sign certificates of servers and nodes, and no further authorities. */
export async function makeAuthority(keyPem: string, commonName: string, now: number): Promise<string> {
  const keys = await importKeys(keyPem);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    ...validity(now, AUTHORITY_LIFE_MS),
    signingAlgorithm: P256,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pem(certificate);
}

export function makeServerCertificate(
  signer: Signer,
  publicKey: KeyObject,
  subject: Subject,
  now: number,
): Promise<string> {
  return issue(signer, publicKey, { subject, now, lifeMs: SERVER_LIFE_MS, usages: [SERVER] });
}

/** For TLS between nodes: it may be either end. */
export function makeNodeCertificate(
  signer: Signer,
  publicKey: KeyObject,
  subject: Subject,
  now: number,
): Promise<string> {
  return issue(signer, publicKey, { subject, now, lifeMs: NODE_LIFE_MS, usages: [SERVER, CLIENT] });
}

const SERVER = "1.3.6.1.5.5.7.3.1";
const CLIENT = "1.3.6.1.5.5.7.3.2";

type Issue = {
  readonly subject: Subject;
  readonly now: number;
  readonly lifeMs: number;
  readonly usages: readonly string[];
};

async function issue(signer: Signer, publicKey: KeyObject, { subject, now, lifeMs, usages }: Issue): Promise<string> {
  const authority = new x509.X509Certificate(signer.certificatePem);
  const spki = publicKey.export({ type: "spki", format: "der" });
  const key = new x509.PublicKey(new Uint8Array(spki));
  const { privateKey } = await importKeys(signer.keyPem);
  const names = [
    ...(subject.hosts ?? []).map((host) => new x509.GeneralName(net.isIP(host) === 0 ? "dns" : "ip", host)),
    ...(subject.uri === undefined ? [] : [new x509.GeneralName("url", subject.uri)]),
  ];
  const organisation = subject.organisation === undefined ? [] : [{ O: [subject.organisation] }];
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [subject.commonName] }, ...organisation],
    issuer: authority.subjectName,
    ...validity(now, lifeMs),
    signingAlgorithm: P256,
    publicKey: key,
    signingKey: privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([...usages]),
      new x509.SubjectAlternativeNameExtension(names),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  return pem(certificate);
}

function validity(now: number, lifeMs: number): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date(now - EARLY_MS), notAfter: new Date(now + lifeMs) };
}

type KeyPair = { readonly privateKey: webcrypto.CryptoKey; readonly publicKey: webcrypto.CryptoKey };

async function importKeys(keyPem: string): Promise<KeyPair> {
  const key = createPrivateKey(keyPem);
  const jwk = key.export({ format: "jwk" });
  const { d: _secret, ...shared } = jwk;
  const subtle = webcrypto.subtle;
  const privateKey = await subtle.importKey("jwk", jwk as webcrypto.JsonWebKey, P256, true, ["sign"]);
  const publicKey = await subtle.importKey("jwk", shared as webcrypto.JsonWebKey, P256, true, ["verify"]);
  return { privateKey, publicKey };
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString("pem").trim()}\n`;
}

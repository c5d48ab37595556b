// SPDX-License-Identifier: Apache-2.0
// The fleet's own authority and this controller's server certificate, in <root>/controller. Made at the first start, each in
// one file that holds key and certificate, so that a crash or a second controller can never leave halves that do not fit.

import { createHash, createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { readPrivateFile, writePrivateFile } from "../enrol/private-file.ts";
import { expiryOf } from "../sign/certificate.ts";
import type { Signer } from "../sign/x509.ts";
import type { Clock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { fileFailure, makeDirectory, syncDirectory } from "../std/files.ts";

/** A server certificate is made anew when less than this is left of it. */
const RENEW_BEFORE_MS = 60 * 86_400_000;

export type KeyPair = { readonly key: string; readonly cert: string };

export type Fleet = {
  readonly caPem: string;
  /** SHA-256 of that text, hexadecimal: what a command pins it by, because any machine can hash a file. */
  readonly caSha256: string;
  readonly nodeCertificate: (
    publicKey: KeyObject,
    who: { readonly nodeId: string; readonly organisationId: string },
  ) => Promise<string>;
  /** The one on disk while it is good for all these names and not about to end, else a new one under the same key. */
  readonly serverCertificate: (hosts: readonly string[]) => Promise<KeyPair>;
};

export async function openFleet(root: string, clock: Clock): Promise<Fleet> {
  const directory = path.join(root, "controller");
  makeDirectory(root, 0o755);
  makeDirectory(directory, 0o700);
  const file = path.join(directory, "authority.pem");
  const authority = loadPair(file) ?? (await makeAuthority(file, clock));
  const signer: Signer = { keyPem: authority.key, certificatePem: authority.cert };
  return {
    caPem: authority.cert,
    caSha256: createHash("sha256").update(authority.cert).digest("hex"),
    nodeCertificate: async (publicKey, { nodeId, organisationId }) => {
      const { makeNodeCertificate } = await import("../sign/x509.ts");
      const subject = { commonName: nodeId, organisation: organisationId, uri: `holdfast:node/${nodeId}` };
      return makeNodeCertificate(signer, publicKey, subject, clock.now());
    },
    serverCertificate: (hosts) => serverPair({ directory, signer, clock }, hosts),
  };
}

async function makeAuthority(file: string, clock: Clock): Promise<KeyPair> {
  const x509 = await import("../sign/x509.ts");
  const key = x509.makeP256Key();
  const cert = await x509.makeAuthority(key, `Holdfast fleet of ${os.hostname()}`.slice(0, 64), clock.now());
  const draft = `${file}.${process.pid}.draft`;
  writePrivateFile(draft, key + cert);
  try {
    // Whoever is second takes what the first one made: an authority is never replaced.
    fs.linkSync(draft, file);
    syncDirectory(path.dirname(file));
    return { key, cert };
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw fileFailure(file, error);
    return loadPair(file) ?? { key, cert };
  } finally {
    fs.rmSync(draft, { force: true });
  }
}

type Place = { readonly directory: string; readonly signer: Signer; readonly clock: Clock };

async function serverPair({ directory, signer, clock }: Place, hosts: readonly string[]): Promise<KeyPair> {
  const file = path.join(directory, "server.pem");
  const known = loadPair(file);
  const isGood =
    known !== undefined && coversAll(known.cert, hosts) && expiryOf(known.cert) - clock.now() > RENEW_BEFORE_MS;
  if (isGood && new X509Certificate(known.cert).verify(new X509Certificate(signer.certificatePem).publicKey))
    return known;
  const x509 = await import("../sign/x509.ts");
  const key = known?.key ?? x509.makeP256Key();
  const subject = { commonName: "Holdfast controller", hosts };
  const cert = await x509.makeServerCertificate(signer, createPublicKey(key), subject, clock.now());
  writePrivateFile(file, key + cert);
  return { key, cert };
}

function coversAll(cert: string, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(cert);
  return hosts.every(
    (host) => (net.isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined,
  );
}

/** Undefined when there is no file; half a file is refused, never replaced. */
function loadPair(file: string): KeyPair | undefined {
  const text = readPrivateFile(file);
  if (text === undefined) return undefined;
  const [, key, cert] =
    /(-----BEGIN PRIVATE KEY-----[\s\S]+?-----END PRIVATE KEY-----\n)(-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----\n)/.exec(
      text,
    ) ?? [];
  if (key === undefined || cert === undefined)
    throw new Failure("config_invalid", `${file} does not hold a private key and a certificate: restore it`);
  try {
    createPublicKey(key);
    if (!new X509Certificate(cert).publicKey.equals(createPublicKey(key))) throw new Error("they do not fit together");
  } catch (error) {
    throw new Failure("config_invalid", `${file} is damaged (${messageOf(error)}): restore it`, { cause: error });
  }
  return { key, cert };
}

/** Every name and address that a node may reach this machine by. */
export function ownHosts(extra: readonly string[]): readonly string[] {
  const addresses = Object.values(os.networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .filter(({ address, family }) => family === "IPv4" || !address.startsWith("fe80:"))
    .map(({ address }) => address);
  return [...new Set(["localhost", os.hostname(), "127.0.0.1", "::1", ...addresses, ...extra])].filter(isHost);
}

function isHost(text: string): boolean {
  return net.isIP(text) !== 0 || /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*$/.test(text);
}

// SPDX-License-Identifier: Apache-2.0
// How a controller is reached: over TLS with a certificate of the fleet's own authority, with a given one, or plain where
// only this machine can connect. Decided from --tls, --url and the address that it listens on.

import { createPublicKey } from "node:crypto";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import tls from "node:tls";
import path from "node:path";
import { nodeDirectory } from "../enrol/node-key.ts";
import { readPrivateFile, writePrivateFile } from "../enrol/private-file.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { fileFailure, makeDirectory } from "../std/files.ts";
import { type Fleet, type KeyPair, ownHosts } from "./fleet.ts";
import type { Environment, Listen } from "./settings.ts";

export type TlsChoice =
  | { readonly kind: "off" }
  | { readonly kind: "fleet" }
  | { readonly kind: "files"; readonly certificate: string; readonly key: string };

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (net.isIPv4(host) && host.startsWith("127."));
}

/** off, fleet, or CERTIFICATE,KEY; by default off where only this machine can connect, else fleet. */
export function tlsFrom(env: Environment, option: string | undefined, { host }: Listen): TlsChoice {
  const given = option ?? env["HOLDFAST_TLS"];
  if (given === undefined || given === "") return { kind: isLoopback(host) ? "off" : "fleet" };
  if (given === "off" || given === "fleet") return { kind: given };
  const [certificate, key, ...more] = given.split(",");
  if (certificate === undefined || key === undefined || more.length > 0 || certificate === "" || key === "") {
    const place = option === undefined ? "HOLDFAST_TLS" : "--tls";
    throw new Failure("config_invalid", `${place} is off, fleet, or CERTIFICATE,KEY (two files), not ${given}`, {
      details: [{ place, problem: `${given} is none of off, fleet, CERTIFICATE,KEY` }],
    });
  }
  return { kind: "files", certificate, key };
}

/** The address that nodes are told, without a path. */
export function publicUrlFrom(env: Environment, option: string | undefined): URL | undefined {
  const given = option ?? env["HOLDFAST_PUBLIC_URL"];
  if (given === undefined || given === "") return undefined;
  const place = option === undefined ? "HOLDFAST_PUBLIC_URL" : "--url";
  const url = URL.parse(given);
  if (
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.pathname === "/" &&
    url.search === "" &&
    url.username === ""
  )
    return url;
  throw new Failure("config_invalid", `${place} is an address such as https://box.lan:7440, not ${given}`, {
    details: [{ place, problem: `${given} is not an http or https address without a path` }],
  });
}

/** What nodes are told when nobody said: the name that it listens under, or this machine's. */
export function defaultHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return os.hostname();
  return net.isIPv6(host) ? `[${host}]` : host;
}

/** Reads key and certificate; called again now and then, so that a renewed file or a new address is taken up. */
export function keyPairReader(choice: TlsChoice, fleet: Fleet, names: readonly string[]) {
  if (choice.kind === "off") return undefined;
  if (choice.kind === "fleet") return (): Promise<KeyPair> => fleet.serverCertificate(ownHosts(names));
  return async (): Promise<KeyPair> => readGiven(choice.certificate, choice.key);
}

function readGiven(certificateFile: string, keyFile: string): KeyPair {
  let cert: string;
  try {
    cert = fs.readFileSync(certificateFile, "utf8");
    createPublicKey(cert);
  } catch (error) {
    throw new Failure("config_invalid", `${certificateFile} is no certificate in PEM: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const key = readPrivateFile(keyFile);
  if (key === undefined) throw new Failure("config_invalid", `${keyFile} does not exist: it should hold the key`);
  try {
    tls.createSecureContext({ cert, key });
  } catch (error) {
    throw new Failure("config_invalid", `${keyFile} is not the key of ${certificateFile}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return { key, cert };
}

const trustFile = (root: string): string => path.join(nodeDirectory(root), "trust.pem");

/** What this machine's node has to trust to reach its controller; undefined: what the system trusts. */
export function keepTrust(root: string, authority: string | undefined): void {
  makeDirectory(root, 0o755);
  makeDirectory(nodeDirectory(root), 0o700);
  if (authority === undefined) fs.rmSync(trustFile(root), { force: true });
  else writePrivateFile(trustFile(root), authority);
}

/** From now on connections of this process trust the controller's authority only, where one was pinned; the system's are left out. */
export function trustController(root: string): void {
  let pinned: string;
  try {
    pinned = fs.readFileSync(trustFile(root), "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw fileFailure(trustFile(root), error);
  }
  try {
    tls.setDefaultCACertificates([pinned]);
  } catch (error) {
    throw new Failure(
      "config_invalid",
      `${trustFile(root)} is no certificate: fetch it again with the bootstrap script`,
      {
        cause: error,
      },
    );
  }
}

/** Beside what the system trusts. */
export function trustAlso(authority: string): void {
  tls.setDefaultCACertificates([authority, ...tls.getCACertificates("bundled"), ...tls.getCACertificates("system")]);
}

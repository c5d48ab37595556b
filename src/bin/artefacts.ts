// SPDX-License-Identifier: Apache-2.0
// What this controller hands to new nodes: the agent that tools/bundle.ts packed and the runtime that npm installed, each
// with its hash. Looked at when somebody asks: a bundle may be made while the controller runs.

import { createHash } from "node:crypto";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { renderBootstrap } from "../enrol/bootstrap.ts";
import type { Artefact, Enrolment } from "../controller/enrolment.ts";
import { type Architecture, architectures } from "../protocol/enrol-schema.ts";
import { pinOf } from "../sign/certificate.ts";
import type { Fleet, KeyPair } from "./fleet.ts";
import type { TlsChoice } from "./tls.ts";
import { VERSION } from "./version.ts";

const place = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url));

const agentPlaces = (arch: Architecture): readonly string[] => [place(`dist/agent-linux-${arch}.tar.gz`)];
const runtimePlaces = (arch: Architecture): readonly string[] => [
  place(`dist/node-linux-${arch}`),
  place(`node_modules/node-linux-${arch}/bin/node`),
];

export type EnrolmentParts = {
  readonly fleet: Fleet;
  readonly tls: TlsChoice;
  /** The certificate that is served now. */
  readonly served: () => KeyPair | undefined;
};

export function enrolmentOf({ fleet, tls, served }: EnrolmentParts): Enrolment {
  const hashes = new HashCache();
  const find = (places: readonly string[]): Promise<Artefact | undefined> => hashes.find(places);
  return {
    authority: { pem: fleet.caPem, sha256: fleet.caSha256 },
    nodeCertificate: fleet.nodeCertificate,
    trust: tls.kind === "off" ? "none" : tls.kind === "fleet" ? "fleet" : "system",
    pin: () => {
      const pair = served();
      return pair === undefined ? undefined : pinOf(pair.cert);
    },
    agent: (arch) => find(agentPlaces(arch)),
    runtime: (arch) => find(runtimePlaces(arch)),
    script: async () => {
      const hash = async (places: (arch: Architecture) => readonly string[]) => {
        const [x64, arm64] = await Promise.all(architectures.map(async (arch) => (await find(places(arch)))?.sha256));
        return { x64: x64 ?? "", arm64: arm64 ?? "" };
      };
      const [agent, runtime] = [await hash(agentPlaces), await hash(runtimePlaces)];
      if (agent.x64 === "" && agent.arm64 === "") return undefined;
      return renderBootstrap({ version: VERSION, agent, runtime });
    },
  };
}

/** A runtime has 120 MB: hashed once for each state of its file. */
class HashCache {
  readonly #known = new Map<string, Promise<string>>();

  /** The first of the places that is there. */
  async find(places: readonly string[]): Promise<Artefact | undefined> {
    for (const file of places) {
      const stat = fs.statSync(file, { throwIfNoEntry: false });
      if (stat === undefined) continue;
      const key = `${file} ${stat.size} ${stat.mtimeMs} ${stat.ino}`;
      const hash = this.#known.get(key) ?? sha256Of(file);
      this.#known.set(key, hash);
      return { file, sha256: await hash };
    }
    return undefined;
  }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of fs.createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(piece as Buffer);
  return hash.digest("hex");
}

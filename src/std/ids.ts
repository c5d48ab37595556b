// SPDX-License-Identifier: Apache-2.0
// Ids are prefixed strings, made only here. 48 bits of time, then 80 random bits: rows made together lie together
// in an index, and a database that was restored from a backup cannot issue an id again, as a sequence would.

import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

type Branded<Brand extends string> = string & { readonly __brand: Brand };

export type OrganisationId = Branded<"org">;
export type UserId = Branded<"user">;
export type NodeId = Branded<"node">;
export type CredentialId = Branded<"cred">;
export type PairingId = Branded<"pair">;
export type SessionId = Branded<"nses">;
export type LaneId = Branded<"lane">;
export type JobId = Branded<"job">;
export type AuditId = Branded<"aud">;
export type LinkId = Branded<"link">;
export type ModelId = Branded<"model">;
export type ProjectId = Branded<"proj">;

type IdOf = {
  org: OrganisationId;
  user: UserId;
  node: NodeId;
  cred: CredentialId;
  pair: PairingId;
  nses: SessionId;
  lane: LaneId;
  job: JobId;
  aud: AuditId;
  link: LinkId;
  model: ModelId;
  proj: ProjectId;
};

/** Crockford's base 32 in lower case: no i, l, o, u. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

export type IdMaker = <Prefix extends keyof IdOf>(prefix: Prefix) => IdOf[Prefix];

export function idMaker(clock: Clock, random: Random): IdMaker {
  return <Prefix extends keyof IdOf>(prefix: Prefix) => {
    let bits = (BigInt(clock.now()) << 80n) | BigInt(`0x${Buffer.from(random.bytes(10)).toString("hex")}`);
    let text = "";
    for (let place = 0; place < 26; place++) {
      text = (ALPHABET[Number(bits & 31n)] ?? "") + text;
      bits >>= 5n;
    }
    return `${prefix}_${text}` as IdOf[Prefix];
  };
}

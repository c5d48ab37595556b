// SPDX-License-Identifier: Apache-2.0
// How a machine becomes a node: the code, the script and the files for it, the pairing itself, and who sees how far it is.

import { createPublicKey, type KeyObject, verify } from "node:crypto";
import fs from "node:fs";
import { Failure } from "../../std/errors.ts";
import { nodeScopes } from "../../protocol/access-schema.ts";
import { pairMessage } from "../../protocol/agent-schema.ts";
import type { EnrolCommands, Pairing } from "../../protocol/enrol-schema.ts";
import { PAGE_DEFAULT, PAIRING_CODE_LIFE_MS } from "../../protocol/limits.ts";
import { isUniqueViolation, type Tx } from "../../db/pool.ts";
import { enrolCommands, scriptSha256 } from "../../enrol/enrol-commands.ts";
import {
  actorOf,
  drawSecret,
  hashSecret,
  type NodeCaller,
  type PeopleCaller,
  SECRET_PATTERN,
} from "../access/credential.ts";
import { insertAudit } from "../audit/audit-store.ts";
import type { Context } from "../context.ts";
import type { Artefact } from "../enrolment.ts";
import type { Call, Handlers } from "../http/reply.ts";
import { returnLeases } from "../jobs/return-store.ts";
import { findNode, findNodeByName } from "./node-store.ts";
import {
  addPhase,
  enrol,
  type Enrolled,
  findPairingCode,
  type FoundCode,
  insertPairingCode,
  keyFingerprint,
  listPairings,
} from "./pairing-store.ts";

type Names =
  | "pairingCreate"
  | "pairingList"
  | "pairingShow"
  | "bootstrapScript"
  | "authorityShow"
  | "agentFile"
  | "nodeRelease"
  | "runtimeFile"
  | "pairingReport"
  | "nodePair"
  | "nodeLeave"
  | "nodeSelf"
  | "nodeCertificate";

export function enrolRoutes(context: Context): Handlers<Names> {
  const { db, enrolment } = context;
  const file = async (artefact: Promise<Artefact | undefined> | undefined, what: string): Promise<string> => {
    const found = await artefact;
    if (found === undefined) throw missing(what);
    // The server streams it: the type of a text route is what it is on the client's side.
    return fs.createReadStream(found.file) as unknown as string;
  };
  return {
    pairingCreate: ({ caller, body }) => createCode(context, caller, body),
    pairingList: async ({ caller }) => {
      const items = await db.tenant(caller, (tx) => listPairings(tx, PAGE_DEFAULT));
      return { items: [...items], nextCursor: null };
    },
    pairingShow: async ({ caller, params }): Promise<Pairing> => {
      const [found] = await db.tenant(caller, (tx) => listPairings(tx, 1, params.pairingId));
      return found ?? notFound(`there is no pairing ${params.pairingId}`);
    },
    bootstrapScript: async () => (await enrolment?.script()) ?? fail(missing("the agent")),
    authorityShow: async () => enrolment?.authority.pem ?? notFound("this controller has no authority of its own"),
    agentFile: ({ query }) => file(enrolment?.agent(query.arch), `the agent for ${query.arch}`),
    nodeRelease: async ({ query }) => {
      const found = (await enrolment?.agent(query.arch)) ?? fail(missing(`the agent for ${query.arch}`));
      return { version: context.config.version, sha256: found.sha256 };
    },
    runtimeFile: ({ query }) => file(enrolment?.runtime(query.arch), `the runtime for ${query.arch}`),
    pairingReport: (call) => takeReport(context, call),
    nodePair: (call) => pair(context, call),
    nodeLeave: ({ caller }) => leave(context, caller),
    nodeSelf: async ({ caller }) => {
      const node = await db.tenant(caller, (tx) => findNode(tx, context.config.heartbeatMs, caller.nodeId));
      if (node === undefined) notFound("the node is gone");
      const { id, name, online, facts, session } = node;
      return { id, name, online, version: facts?.version ?? null, sessionAt: session?.startedAt ?? null };
    },
    nodeCertificate: async ({ caller }) => {
      if (enrolment === undefined)
        throw new Failure("conflict", "this controller has no authority of its own, so it gives no certificates");
      const publicKey = await db.tenant(caller, (tx) =>
        tx.one<{ public_key: Buffer }>("select public_key from app.node where id = $1", [caller.nodeId]),
      );
      const certificate = await enrolment.nodeCertificate(keyObject(publicKey.public_key), caller);
      return { certificate, authority: enrolment.authority.pem };
    },
  };
}

const fail = (error: Failure): never => {
  throw error;
};

function notFound(what: string): never {
  throw new Failure("not_found", what);
}

function missing(what: string): Failure {
  return new Failure("bundle_missing", `this controller has no bundle of ${what} to hand out`);
}

async function createCode(context: Context, caller: PeopleCaller, body: Call<"pairingCreate">["body"]) {
  const { name, takeOver = false } = body;
  const code = drawSecret("pairing", context.random);
  const id = context.ids("pair");
  const { organisationId } = caller;
  const made = await context.db.tenant(caller, async (tx) => {
    const present = await findNodeByName(tx, context.config.heartbeatMs, name);
    if (takeOver && present === undefined) notFound(`there is no node ${name} to take over`);
    if (!takeOver && present !== undefined) throw nameTaken(name, present.lastHeartbeatAt);
    const inserted = await insertPairingCode(tx, {
      organisationId,
      id,
      name,
      hash: hashSecret(code),
      lifeMs: PAIRING_CODE_LIFE_MS,
      takesOver: takeOver && present !== undefined ? present.id : null,
    });
    if (inserted === undefined) throw nameTaken(name, null);
    await insertAudit(tx, {
      organisationId,
      id: context.ids("aud"),
      actor: actorOf(caller),
      action: takeOver ? "node.pair-take-over" : "node.pair",
      subject: id,
      data: { name, ...(takeOver ? { nodeId: present?.id } : {}) },
    });
    return inserted;
  });
  return { id, name, code, expiresAt: made.expiresAt, commands: await commandsOf(context) };
}

async function commandsOf({ enrolment, address }: Context): Promise<EnrolCommands | null> {
  const script = await enrolment?.script();
  if (enrolment === undefined || script === undefined) return null;
  return enrolCommands({
    url: address(),
    pin: enrolment.trust === "fleet" ? enrolment.pin() : undefined,
    authoritySha256: enrolment.trust === "fleet" ? enrolment.authority.sha256 : undefined,
    scriptSha256: scriptSha256(script),
  });
}

function nameTaken(name: string, lastSeen: string | null): Failure {
  const seen = lastSeen === null ? "never seen" : `last seen ${lastSeen}`;
  return new Failure(
    "node_name_taken",
    `a node named ${name} exists (${seen}), and pairing does not replace it: choose another name, retire it, or, if this is its machine set up anew, take it over with: holdfast node pair ${name} --take-over`,
  );
}

/** The node that got the name while the code waited. */
async function takenMeanwhile({ db, config }: Context, { organisationId, id }: FoundCode): Promise<Failure> {
  return db.tenant({ organisationId, scopes: [] }, async (tx) => {
    const [pairing] = await listPairings(tx, 1, id);
    const name = pairing?.name ?? notFound("the pairing is gone");
    const present = await findNodeByName(tx, config.heartbeatMs, name);
    return nameTaken(name, present?.lastHeartbeatAt ?? null);
  });
}

/** The code of the header, looked up. */
async function codeOf(context: Context, pairingCode: string | undefined): Promise<FoundCode> {
  if (pairingCode === undefined || !SECRET_PATTERN.test(pairingCode)) {
    throw new Failure("pairing_code_unknown", "this is not a pairing code: one begins with hfp_ and has 47 characters");
  }
  const found = await context.db.service((tx) => findPairingCode(tx, hashSecret(pairingCode)));
  if (found === undefined) throw new Failure("pairing_code_unknown", "no such pairing code was ever made here");
  return found;
}

async function takeReport(context: Context, { body, pairingCode }: Call<"pairingReport">) {
  const { organisationId, id } = await codeOf(context, pairingCode);
  const { config, db, wakeups } = context;
  const reply = await db.tenant({ organisationId, scopes: [] }, async (tx) => {
    if (body.report !== undefined) await addPhase(tx, id, body.report);
    const [pairing] = await listPairings(tx, 1, id);
    if (pairing === undefined) notFound("the pairing is gone");
    const node = pairing.nodeId === null ? undefined : await findNode(tx, config.heartbeatMs, pairing.nodeId);
    return {
      state: pairing.state,
      name: pairing.name,
      node: node === undefined ? null : { id: node.id, online: node.online, version: node.facts?.version ?? null },
    };
  });
  if (body.report !== undefined) wakeups.wake(`changes:${organisationId}`);
  return reply;
}

async function pair(context: Context, { body, pairingCode, address }: Call<"nodePair">) {
  const found = await codeOf(context, pairingCode);
  const publicKey = proveKey(pairingCode ?? "", body);
  const { organisationId, id: pairingId } = found;
  const enrolled = await context.db
    .tenant({ organisationId, scopes: [] }, async (tx) => {
      const result = await enrol(tx, {
        organisationId,
        pairingId,
        nodeId: context.ids("node"),
        credentialId: context.ids("cred"),
        publicKey: Buffer.from(body.publicKey, "base64url"),
        credentialHash: Buffer.from(body.credentialHash, "base64url"),
        scopes: nodeScopes,
        address,
      });
      await note(tx, context, { found, result, publicKey: body.publicKey, address });
      return result;
    })
    .catch(async (error: unknown) => {
      if (isUniqueViolation(error, "node_name")) throw await takenMeanwhile(context, found);
      if (isUniqueViolation(error, "credential_hash_key")) {
        throw new Failure("conflict", "this credential is in use: draw another one for each pairing", { cause: error });
      }
      throw error;
    });
  if (enrolled.kind === "used")
    throw new Failure("pairing_code_used", "this pairing code has enrolled a machine already");
  if (enrolled.kind === "expired") throw new Failure("pairing_code_expired", "this pairing code has expired");
  context.wakeups.wake(`changes:${organisationId}`);
  const { nodeId, name } = enrolled;
  const certificate = await certificateOf(context, publicKey, { nodeId, organisationId });
  const reply = { nodeId, name, organisationName: found.organisationName, certificate };
  return enrolled.kind === "repeated" ? { repeated: reply } : reply;
}

async function leave(context: Context, caller: NodeCaller): Promise<Record<string, never>> {
  const { organisationId, nodeId } = caller;
  await context.db.tenant(caller, async (tx) => {
    await tx.query("update app.node set left_at = now(), session_id = null where id = $1", [nodeId]);
    await returnLeases(tx, context, { nodeId, actor: nodeId, why: "the node was uninstalled" });
    const audit = { organisationId, id: context.ids("aud"), actor: nodeId, action: "node.leave", subject: nodeId };
    await insertAudit(tx, audit);
  });
  context.wakeups.wake(`work:${organisationId}`);
  context.wakeups.wake(`changes:${organisationId}`);
  return {};
}

async function certificateOf({ enrolment }: Context, key: KeyObject, who: { nodeId: string; organisationId: string }) {
  if (enrolment === undefined) return null;
  return { certificate: await enrolment.nodeCertificate(key, who), authority: enrolment.authority.pem };
}

type Noted = {
  readonly found: FoundCode;
  readonly result: Enrolled;
  readonly publicKey: string;
  readonly address: string;
};

/** Who used the code, from where and with which key; a refused second use is told as well. */
async function note(tx: Tx, context: Context, { found, result, publicKey, address }: Noted): Promise<void> {
  if (result.kind === "repeated" || result.kind === "expired") return;
  const action = { enrolled: "node.enrol", "taken-over": "node.take-over", used: "node.pair-refused" }[result.kind];
  await insertAudit(tx, {
    organisationId: found.organisationId,
    id: context.ids("aud"),
    actor: found.id,
    action,
    subject: result.kind === "used" ? found.id : result.nodeId,
    data: {
      ...(result.kind === "used" ? {} : { name: result.name }),
      address,
      key: keyFingerprint(Buffer.from(publicKey, "base64url")),
    },
  });
  if (result.kind !== "taken-over") return;
  const why = "another machine took the node over";
  await returnLeases(tx, context, { nodeId: result.nodeId, actor: found.id, why });
}

/** The DER prefix of an Ed25519 public key (RFC 8410). */
const ED25519_SPKI = Buffer.from("302a300506032b6570032100", "hex");

function keyObject(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([ED25519_SPKI, raw]), format: "der", type: "spki" });
}

/** The machine holds the private half, and this very code and credential were meant. */
function proveKey(code: string, body: Call<"nodePair">["body"]): KeyObject {
  const message = Buffer.from(pairMessage(code, body.publicKey, body.credentialHash));
  let key: KeyObject;
  let isProved = false;
  try {
    key = keyObject(Buffer.from(body.publicKey, "base64url"));
    isProved = verify(null, message, key, Buffer.from(body.signature, "base64url"));
  } catch (error) {
    throw new Failure("invalid_request", "/publicKey is not an Ed25519 key", {
      cause: error,
      details: [{ place: "/publicKey", problem: "is not an Ed25519 key" }],
    });
  }
  if (isProved) return key;
  throw new Failure("invalid_request", "/signature does not prove possession of the key", {
    details: [{ place: "/signature", problem: "does not prove possession of the key" }],
  });
}

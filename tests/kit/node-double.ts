// SPDX-License-Identifier: Apache-2.0
// A node driven by hand over the real HTTP routes: for tests that need to be a good, a late or a lying agent. Its key pair,
// its pairing and its session are real; only the loops of the agent are not there.

import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { type Client, createClient } from "../../src/client/client.ts";
import { pairMessage } from "../../src/protocol/agent-schema.ts";
import type { NodeFacts } from "../../src/protocol/node-schema.ts";
import type { SceneReport } from "../../src/protocol/scene-schema.ts";

export const someFacts: NodeFacts = {
  hostname: "double",
  arch: "x64",
  kernel: "6.0",
  cpuName: "Test CPU",
  cpuCount: 2,
  memoryTotalBytes: 16 * 2 ** 30,
  memoryAvailableBytes: 8 * 2 ** 30,
  devices: [],
  version: "0.1.0",
  slots: 64,
};

export type NodeKey = {
  readonly publicKey: string;
  readonly credential: string;
  readonly signature: (code: string) => string;
  readonly credentialHash: string;
};

export function newNodeKey(): NodeKey {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64url");
  const credential = `hfn_${randomBytes(32).toString("base64url")}`;
  const credentialHash = createHash("sha256").update(credential).digest("base64url");
  return {
    publicKey: raw,
    credential,
    credentialHash,
    signature: (code) =>
      sign(null, Buffer.from(pairMessage(code, raw, credentialHash)), privateKey).toString("base64url"),
  };
}

export function pairWith(baseUrl: string, code: string, key: NodeKey) {
  const body = { publicKey: key.publicKey, credentialHash: key.credentialHash, signature: key.signature(code) };
  return createClient({ baseUrl }).call("nodePair", { body, pairingCode: code });
}

export class NodeDouble {
  readonly client: Client;
  readonly nodeId: string;
  readonly credential: string;
  facts: NodeFacts;
  sessionId = "";
  #number = 0;

  constructor(options: {
    readonly baseUrl: string;
    readonly nodeId: string;
    readonly credential: string;
    readonly facts?: Partial<NodeFacts>;
  }) {
    this.client = createClient(options);
    this.nodeId = options.nodeId;
    this.credential = options.credential;
    this.facts = { ...someFacts, ...options.facts };
  }

  async hello(holds: readonly { jobId: string; epoch: string }[] = []) {
    const reply = await this.client.call("nodeHello", {
      body: { facts: this.facts, now: new Date().toISOString(), holds: [...holds] },
    });
    this.sessionId = reply.sessionId;
    this.#number = 0;
    return reply;
  }

  /** change: facts that are other than they were; they stay so. */
  heartbeat(change: Partial<NodeFacts> = {}, scenes?: SceneReport) {
    this.facts = { ...this.facts, ...change };
    const body = { sessionId: this.sessionId, facts: this.facts, now: new Date().toISOString() };
    return this.client.call("nodeHeartbeat", { body: scenes === undefined ? body : { ...body, scenes } });
  }

  async claim(max: number, options: { readonly waitMs?: number; readonly number?: number } = {}) {
    const number = options.number ?? ++this.#number;
    const { jobs } = await this.client.call("nodeClaim", {
      body: { sessionId: this.sessionId, number, max, waitMs: options.waitMs ?? 0 },
    });
    return jobs;
  }

  async start(jobId: string, epoch: string) {
    const { verdicts } = await this.client.call("nodeStarts", {
      body: { sessionId: this.sessionId, starts: [{ jobId, epoch }] },
    });
    return verdicts[0]?.verdict;
  }

  async renew(jobId: string, epoch: string) {
    const reply = await this.client.call("nodeRenewals", {
      body: { sessionId: this.sessionId, leases: [{ jobId, epoch }] },
    });
    return { verdict: reply.verdicts[0]?.verdict, cancel: reply.cancel, drain: reply.drain };
  }

  async end(
    jobId: string,
    epoch: string,
    change: {
      exitCode?: number;
      notStarted?: true;
      stopped?: "cancel" | "release";
      result?: unknown;
      message?: string;
    } = {},
  ) {
    const outcome =
      change.notStarted === true
        ? { kind: "not-started" as const, message: "" }
        : { kind: "exited" as const, exitCode: change.exitCode ?? 0 };
    const ending = {
      jobId,
      epoch,
      outcome,
      stopped: change.stopped ?? null,
      startedAt: null,
      endedAt: null,
      message: change.message ?? null,
      ...("result" in change ? { result: change.result } : {}),
    };
    return (await this.client.call("nodeEnding", { body: { sessionId: this.sessionId, ending } })).verdict;
  }

  log(jobId: string, epoch: string, chunk: { offset: number; text: string; stream?: "stdout" | "stderr" }) {
    const { offset, text, stream = "stdout" } = chunk;
    const data = Buffer.from(text).toString("base64");
    return this.client.call("nodeLog", { body: { sessionId: this.sessionId, jobId, epoch, stream, offset, data } });
  }
}

// SPDX-License-Identifier: Apache-2.0
// Claims about the node's secrets and the pairing, on a real directory and against a fetch that records what was sent.

import assert from "node:assert/strict";
import { createHash, createPublicKey, verify } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { createClient } from "../client/client.ts";
import { pairMessage } from "../protocol/agent-schema.ts";
import { codeOf } from "../std/errors.ts";
import { systemRandom } from "../std/random.ts";
import { loadAgentConfig } from "./agent-config.ts";
import { finishPairing, pair } from "./enrol.ts";
import { credentialFile, loadCredential, parseCredential } from "./node-key.ts";

function temporaryRoot(context: TestContext): string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-enrol-"));
  context.after(() => fs.rmSync(root, { recursive: true, force: true }));
  return root;
}

type Sent = { readonly headers: Headers; readonly body: Record<string, string> };

function recordingClient(sent: Sent[], answers: (() => Response)[]): ReturnType<typeof createClient> {
  return createClient({
    baseUrl: "http://controller.test",
    fetch: async (_url, init) => {
      sent.push({ headers: new Headers(init?.headers), body: JSON.parse(String(init?.body)) as Sent["body"] });
      const answer = answers.shift();
      if (answer === undefined) throw new TypeError("connection reset");
      return answer();
    },
  });
}

const reply = () =>
  Response.json({ nodeId: "node_1", name: "spark", organisationName: "Home", certificate: null }, { status: 201 });

test("a lost answer is repeated with the same key, the same hash and the same code", async (context) => {
  const root = temporaryRoot(context);
  const sent: Sent[] = [];
  const lost = recordingClient(sent, []);
  await assert.rejects(pair({ client: lost, code: "ABCD-1234", root, random: systemRandom }), {
    code: "controller_unreachable",
  });
  assert.equal(loadAgentConfig(root), undefined);
  const paired = await pair({ client: recordingClient(sent, [reply]), code: "ABCD-1234", root, random: systemRandom });
  assert.equal(paired.organisationName, "Home");
  assert.deepEqual(sent[0]?.body, sent[1]?.body);
  assert.deepEqual(loadAgentConfig(root), { controllerUrl: "http://controller.test", nodeId: "node_1", name: "spark" });
});

test("the code travels in a header, only a hash of the credential leaves, and the signature proves the key", async (context) => {
  const root = temporaryRoot(context);
  const sent: Sent[] = [];
  await pair({ client: recordingClient(sent, [reply]), code: " CODE \n", root, random: systemRandom });
  const { headers, body } = sent[0] ?? assert.fail("nothing was sent");
  assert.equal(headers.get("holdfast-pairing-code"), "CODE");
  const credential = loadCredential(root) ?? assert.fail("no credential");
  assert.equal(body["credentialHash"], createHash("sha256").update(credential).digest("base64url"));
  assert.ok(!JSON.stringify(sent).includes(credential));
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: body["publicKey"] ?? "" }, format: "jwk" });
  const message = pairMessage("CODE", body["publicKey"] ?? "", body["credentialHash"] ?? "");
  assert.ok(verify(null, Buffer.from(message), key, Buffer.from(body["signature"] ?? "", "base64url")));
});

test("another code makes another node: its key and credential are new, and the old ones stay when it is refused", async (context) => {
  const root = temporaryRoot(context);
  const sent: Sent[] = [];
  await pair({ client: recordingClient(sent, [reply]), code: "one", root, random: systemRandom });
  const before = loadCredential(root);
  const refusal = () => Response.json({ code: "pairing_code_unknown", message: "no", requestId: "r" }, { status: 401 });
  await assert.rejects(pair({ client: recordingClient(sent, [refusal]), code: "two", root, random: systemRandom }), {
    code: "pairing_code_unknown",
  });
  assert.equal(loadCredential(root), before);
  await pair({ client: recordingClient(sent, [reply]), code: "three", root, random: systemRandom });
  assert.notEqual(loadCredential(root), before);
  assert.equal(new Set(sent.map(({ body }) => body["publicKey"])).size, 3);
  assert.deepEqual(fs.readdirSync(path.join(root, "node")).sort(), ["agent.json", "credential", "node.key"]);
});

test("a crash between the answer and the end of the pairing is finished at the next start", async (context) => {
  const root = temporaryRoot(context);
  await pair({ client: recordingClient([], [reply]), code: "one", root, random: systemRandom });
  const node = path.join(root, "node");
  const credential = loadCredential(root);
  fs.mkdirSync(path.join(node, "pairing-x"));
  for (const file of ["credential", "agent.json"])
    fs.renameSync(path.join(node, file), path.join(node, "pairing-x", file));
  finishPairing(root);
  assert.equal(loadCredential(root), credential);
  assert.equal(loadAgentConfig(root)?.name, "spark");
});

test("secrets are 0600 in a directory of 0700, whatever the umask", async (context) => {
  const root = temporaryRoot(context);
  const before = process.umask(0);
  try {
    await pair({ client: recordingClient([], [reply]), code: "one", root, random: systemRandom });
  } finally {
    process.umask(before);
  }
  assert.equal(fs.statSync(credentialFile(root)).mode & 0o777, 0o600);
  assert.equal(fs.statSync(path.join(root, "node", "node.key")).mode & 0o777, 0o600);
  assert.equal(fs.statSync(path.join(root, "node")).mode & 0o777, 0o700);
});

test("a credential that others can read is refused", async (context) => {
  const root = temporaryRoot(context);
  await pair({ client: recordingClient([], [reply]), code: "one", root, random: systemRandom });
  fs.chmodSync(credentialFile(root), 0o640);
  assert.throws(() => loadCredential(root), { code: "secret_exposed" });
});

test("an empty and a damaged credential are told apart, and neither is repeated", () => {
  assert.throws(() => parseCredential(" \n", "standard input"), {
    code: "secret_missing",
    message: /standard input is empty/,
  });
  assert.throws(
    () => parseCredential("hfn_short", "the file"),
    (error: Error) => codeOf(error) === "config_invalid" && !error.message.includes("hfn_short"),
  );
});

test("a root that cannot be used is named", async (context) => {
  const root = temporaryRoot(context);
  fs.writeFileSync(path.join(root, "file"), "");
  const broken = path.join(root, "file", "below");
  await assert.rejects(
    pair({ client: recordingClient([], [reply]), code: "one", root: broken, random: systemRandom }),
    { code: "root_unusable", message: /file\/below/ },
  );
});

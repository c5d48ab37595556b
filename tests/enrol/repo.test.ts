// SPDX-License-Identifier: Apache-2.0
// The access of a node to one repository, against a real git server over ssh: what the key can do is proved, and each thing that
// stands in the way is a fault of its own.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { repoKey, repoVerify } from "../../src/bin/repo.ts";
import { Failure } from "../../src/std/errors.ts";
import { createHome, type Home } from "../kit/command.ts";
import { createGitServer, type GitServer } from "./git-server.ts";
import { compileCache } from "../kit/compile-cache.ts";

type Node = {
  readonly home: Home;
  readonly server: GitServer;
  readonly directory: string;
  readonly env: Record<string, string>;
  readonly named: { readonly host: string; readonly port: number; readonly user: string; readonly repo: string };
};

async function prepared(t: TestContext): Promise<Node> {
  const home = createHome(t);
  const server = await createGitServer(t);
  const { port, user, repository } = server;
  return {
    home,
    server,
    directory: path.join(home.root, "node", "repo"),
    env: { PATH: process.env["PATH"] ?? "", HOME: home.directory, HOLDFAST_ROOT: home.root, ...compileCache },
    named: { host: "127.0.0.1", port, user, repo: repository },
  };
}

/** With a key that the server takes for this, and a host that is trusted. */
async function withKey(t: TestContext, right: "read" | "write" | "rule"): Promise<Node> {
  const node = await prepared(t);
  const { publicKey } = await repoKey({ ...node.named, fingerprint: node.server.fingerprint() }, node.env);
  node.server.allow(publicKey, right);
  return node;
}

function fails(work: Promise<unknown>, code: string, said: RegExp): Promise<void> {
  return assert.rejects(work, (error) => {
    assert.ok(error instanceof Failure && error.code === code, String(error));
    assert.match(error.message, said);
    return true;
  });
}

test("D35: repo-key makes one key on the node, in files of 0600 only, prints its public half and alias, and repo-verify proves fetch and refused push", async (t) => {
  const { home, server, directory, named, env } = await prepared(t);
  const none = await home.run(["node", "repo-key"]);
  assert.equal(none.code, 64);
  assert.match(none.stderr, /--host: is missing.*\n.*--repo: is missing/);
  assert.ok(!fs.existsSync(directory));
  await fails(repoVerify({}, env), "repo_unset", /no access to a repository/);

  const name = ["--host", named.host, "--port", String(named.port), "--user", named.user, "--repo", named.repo];
  const made = await home.run(["node", "repo-key", ...name]);
  assert.equal(made.code, 0, made.stderr);
  const [publicKey = ""] = made.stdout.split("\n");
  assert.match(publicKey, /^ssh-ed25519 [A-Za-z0-9+/]{68} holdfast@\S+$/);
  assert.match(made.stdout, new RegExp(`\\nHost holdfast-repo\\n  HostName 127.0.0.1\\n  Port ${named.port}\\n`));
  assert.match(made.stdout, /\n {2}IdentitiesOnly yes\n/);
  assert.ok(made.stderr.includes(server.fingerprint()), "what the server shows can be compared");
  const secret = fs.readFileSync(path.join(directory, "key"), "utf8");
  assert.match(secret, /^-----BEGIN OPENSSH PRIVATE KEY-----/);
  assert.ok(!(made.stdout + made.stderr).includes(secret.split("\n")[2] ?? "?"), "the private half is not printed");
  for (const file of fs.readdirSync(directory))
    assert.equal(fs.statSync(path.join(directory, file)).mode & 0o777, 0o600, file);
  assert.equal(fs.statSync(directory).mode & 0o777, 0o700);
  assert.deepEqual(fs.readdirSync(directory).toSorted(), ["access.json", "key", "ssh_config"]);

  await fails(repoVerify({}, env), "repo_host_unknown", /is not trusted yet, and nothing was sent there/);
  const trusted = await repoKey({ fingerprint: server.fingerprint() }, env);
  assert.equal(trusted.publicKey, publicKey, "the key stays");
  await fails(repoVerify({}, env), "repo_key_refused", /does not take this node's key for .*Permission denied/);

  server.allow(publicKey, "read");
  const commit = server.commit({ "scenes.yaml": "version: 1\n" });
  const verified = await home.run(["node", "repo-verify"]);
  assert.equal(verified.code, 0, verified.stderr);
  assert.match(
    verified.stdout,
    new RegExp(`^fetch {2}works: ${named.repo} at 127.0.0.1, ${commit}\\npush   is refused: `),
  );
  assert.match(verified.stdout, /the server opens nothing for writing \(ERROR: this key is for reading only\)/);
  assert.deepEqual(server.branches(), ["refs/heads/main"]);
  assert.ok(!fs.existsSync(path.join(home.directory, ".ssh")), "the account's own ssh is not touched");
  assert.equal(fs.readdirSync(directory).filter((file) => /^(git|new)-/.test(file)).length, 0);
});

test("a key that may write is the loudest fault, and the branch of the test is gone again", async (t) => {
  const { home, server, env, named } = await withKey(t, "write");
  server.commit({ a: "1" });
  const verified = await home.run(["node", "repo-verify"]);
  assert.equal(verified.code, 45, verified.stderr);
  assert.match(verified.stderr, /^holdfast: DANGER: this node's key may write to scenes\.git .* was deleted again/);
  assert.deepEqual(server.branches(), ["refs/heads/main"]);
  // Revoked by its one key on the server.
  server.allow("ssh-ed25519 AAAA another", "read");
  await fails(repoVerify({}, env), "repo_key_refused", new RegExp(named.user));
});

test("a push that only a rule of the repository refuses is told as that, with the server's words", async (t) => {
  const { server, env } = await withKey(t, "rule");
  const empty = await repoVerify({}, env);
  assert.deepEqual([empty.commit, empty.refusedBy], [null, "rule"]);
  const commit = server.commit({ a: "1" });
  const found = await repoVerify({}, env);
  assert.deepEqual([found.commit, found.refusedBy], [commit, "rule"]);
  assert.match(found.words, /pre-receive hook declined/);
});

test("another host key, another repository, a server that is away, programs that are missing: each is a fault of its own", async (t) => {
  const { home, server, env, named, directory } = await withKey(t, "read");
  await fails(
    repoKey({ repo: "other.git" }, env),
    "conflict",
    /is for scenes\.git .* --replace makes a new one for other\.git/,
  );
  await fails(
    repoKey({ fingerprint: `SHA256:${"A".repeat(43)}` }, env),
    "repo_host_unknown",
    /shows no host key SHA256:AAA/,
  );
  await fails(repoVerify({}, { ...env, PATH: home.directory }), "repo_tool_missing", /there is no git on PATH/);

  const key = path.join(directory, "key");
  fs.chmodSync(key, 0o644);
  await fails(repoKey({}, env), "secret_exposed", /other accounts can reach this secret/);
  fs.chmodSync(key, 0o600);

  for (const type of ["ed25519", "ecdsa"] as const) {
    await server.changeHostKey(type);
    await fails(repoVerify({}, env), "repo_host_changed", /somebody may be in between/);
  }
  await repoKey({ fingerprint: server.fingerprint() }, env);
  await repoVerify({}, env);

  fs.writeFileSync(path.join(directory, "access.json"), "torn");
  await fails(repoVerify({}, env), "config_invalid", /access\.json does not say which repository is meant/);
  await repoKey({ ...named, replace: true, fingerprint: server.fingerprint() }, env);
  const other = await repoKey({ repo: "other.git", replace: true }, env);
  assert.ok(other.isHostTrusted, "of the same host");
  await fails(repoVerify({}, env), "repo_key_refused", /Permission denied/);
  server.allow(other.publicKey, "read");
  await fails(repoVerify({}, env), "repo_missing", /opens no other\.git at .*Repository not found/);

  await server.stop();
  await fails(repoVerify({}, env), "repo_unreachable", /Connection refused/);
});

test("what could become an option, a command or another line of a configuration is refused, each with its option", async (t) => {
  const home = createHome(t);
  const env = { PATH: process.env["PATH"] ?? "", HOLDFAST_ROOT: home.root, ...compileCache };
  const odd = { host: "-oProxyCommand=x", user: "a\nProxyCommand x", repo: "--upload-pack=x", port: 70_000 };
  await assert.rejects(repoKey(odd, env), (error) => {
    assert.ok(error instanceof Failure && error.code === "usage");
    assert.deepEqual(error.details.map(({ place }) => place).toSorted(), ["--host", "--port", "--repo", "--user"]);
    return true;
  });
  for (const repo of ["a'b", "a b", "a;b", "$(x)", "a\\b", ""])
    await fails(repoKey({ host: "h", repo }, env), "usage", /no repository/);
  await fails(repoKey({ host: "h", repo: "r", root: '/a"b' }, env), "root_unusable", /ssh cannot be told/);
  assert.ok(!fs.existsSync(home.root));
});

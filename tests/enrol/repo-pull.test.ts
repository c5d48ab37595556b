// SPDX-License-Identifier: Apache-2.0
// scenes.yaml out of the repository of a node, over real ssh: on command, checked before it is used, whole, and never over what
// somebody wrote here; nothing that a repository or the account's own git configuration brings is run.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { repoKey, scenePull, type ScenePullOptions } from "../../src/bin/repo.ts";
import type { Pulled } from "../../src/enrol/repo-pull.ts";
import { Failure } from "../../src/std/errors.ts";
import { createHome, type Home } from "../kit/command.ts";
import { createGitServer, type GitServer } from "./git-server.ts";
import { compileCache } from "../kit/compile-cache.ts";

const scenes = (name: string): string => `version: 1
models:
  ${name}: { argv: [sleep, "1"], port: 9001, marker: ${name} }
scenes:
  ${name}: { models: [${name}] }
`;

type Puller = {
  readonly home: Home;
  readonly server: GitServer;
  /** scenes.yaml of the node. */
  readonly target: string;
  /** There when something ran that must not. */
  readonly trap: string;
  readonly pull: (more?: Partial<ScenePullOptions>) => Promise<Pulled>;
  /** And the file is what it was. */
  readonly refuses: (work: Promise<unknown>, code: string, said: RegExp) => Promise<void>;
};

async function prepared(t: TestContext): Promise<Puller> {
  const home = createHome(t);
  const server = await createGitServer(t);
  const target = path.join(home.root, "scenes.yaml");
  const trap = path.join(home.directory, "trapped");
  const env = { PATH: process.env["PATH"] ?? "", HOME: home.directory, HOLDFAST_ROOT: home.root, ...compileCache };
  const { port, user, repository: repo } = server;
  const made = await repoKey({ host: "127.0.0.1", port, user, repo, fingerprint: server.fingerprint() }, env);
  server.allow(made.publicKey, "read");
  // The account's own configuration would run this on every fetch.
  const hooks = path.join(home.directory, "hooks");
  fs.mkdirSync(hooks);
  for (const hook of ["reference-transaction", "post-checkout", "post-merge"])
    fs.writeFileSync(path.join(hooks, hook), `#!/bin/sh\ntouch ${trap}\n`, { mode: 0o755 });
  fs.writeFileSync(
    path.join(home.directory, ".gitconfig"),
    `[core]\n  hooksPath = ${hooks}\n  sshCommand = touch ${trap};\n[url "ext::touch ${trap} "]\n  insteadOf = holdfast-repo:\n`,
  );
  const pull = (more: Partial<ScenePullOptions> = {}): Promise<Pulled> =>
    scenePull({ ref: "HEAD", file: "scenes.yaml", ...more }, env);
  const refuses = async (work: Promise<unknown>, code: string, said: RegExp): Promise<void> => {
    const before = fs.existsSync(target) ? fs.readFileSync(target, "utf8") : "";
    await assert.rejects(work, (error) => {
      assert.ok(error instanceof Failure && error.code === code, String(error));
      assert.match(`${error.message} ${error.details.map(({ place, problem }) => `${place} ${problem}`).join()}`, said);
      return true;
    });
    assert.equal(fs.existsSync(target) ? fs.readFileSync(target, "utf8") : "", before);
  };
  return { home, server, target, trap, pull, refuses };
}

test("scene pull brings scenes.yaml whole and checked, and leaves the old one where anything is wrong", async (t) => {
  const { home, server, target, trap, pull, refuses } = await prepared(t);
  await refuses(pull(), "repo_missing", /is empty/);
  const first = server.commit({
    "scenes.yaml": scenes("red"),
    "nodes/anna.yaml": scenes("blue"),
    ".gitattributes": "* filter=evil\n",
    ".gitmodules": `[submodule "s"]\n  path = s\n  url = ext::touch ${trap}\n`,
    link: ["120000", "/etc/passwd"],
    large: "#".repeat(1024 * 1024 + 1),
  });
  const pulled = await home.run(["scene", "pull"]);
  assert.equal(pulled.code, 0, pulled.stderr);
  assert.match(pulled.stdout, new RegExp(`scenes\\.yaml is now as in commit ${first.slice(0, 12)}\\.`));
  assert.equal(fs.readFileSync(target, "utf8"), scenes("red"));
  assert.equal((await pull()).isChanged, false);
  assert.equal((await pull({ file: "nodes/anna.yaml", ref: "main" })).isChanged, true);
  assert.equal(fs.readFileSync(target, "utf8"), scenes("blue"));

  await refuses(pull({ file: "link" }), "repo_missing", /link in [0-9a-f]{12} .* is no plain file \(mode 120000\)/);
  await refuses(pull({ file: "large" }), "repo_missing", /more than 1 MiB/);
  await refuses(pull({ file: "none.yaml" }), "repo_missing", /there is no none\.yaml/);
  await refuses(pull({ ref: "gone" }), "repo_missing", /has no gone/);
  for (const odd of ["../x", "/etc/passwd", "-x", "a/../../b", ":(glob)**"])
    await refuses(pull({ file: odd }), "usage", /is no path inside/);
  for (const odd of ["--upload-pack=x", "a b", "+x:y", "a..b"]) await refuses(pull({ ref: odd }), "usage", /no branch/);

  server.commit({ "scenes.yaml": scenes("red").replace("9001", "none") });
  const bad = await home.run(["scene", "pull"]);
  assert.equal(bad.code, 109, bad.stderr);
  assert.match(
    bad.stderr,
    /scenes\.yaml of commit [0-9a-f]{12} has .*; the old one stays in use\n.*:3:\d+: port must be/,
  );
  assert.equal(fs.readFileSync(target, "utf8"), scenes("blue"));

  server.commit({ "scenes.yaml": scenes("green") });
  fs.appendFileSync(target, "# by hand\n");
  await refuses(pull(), "repo_file_changed", /was changed here/);
  const replaced = await pull({ replace: true });
  assert.equal(replaced.kept, `${target}.before`);
  assert.equal(fs.readFileSync(`${target}.before`, "utf8"), `${scenes("blue")}# by hand\n`);
  assert.equal(fs.readFileSync(target, "utf8"), scenes("green"));
  assert.ok(!fs.existsSync(trap), "nothing of the repository or of the account was run");
  assert.deepEqual(
    fs.readdirSync(home.root).filter((name) => name.endsWith(".new")),
    [],
  );
});

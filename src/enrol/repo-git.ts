// SPDX-License-Identifier: Apache-2.0
// git over this node's own ssh configuration, in a bare repository that lives as long as one question. Rules: nothing is ever
// checked out, so no hook, filter or submodule of a repository runs; ssh is the only way out; no configuration but ours counts.

import fs from "node:fs";
import path from "node:path";
import { Failure } from "../std/errors.ts";
import { accessText, REPO_ALIAS, type RepoAccess } from "./repo-access.ts";
import { type ChildOptions, lastWords, type Ran, runChild } from "./repo-child.ts";
import { askService } from "./repo-ssh.ts";

const SETTINGS = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "protocol.allow=never",
  "protocol.ssh.allow=always",
  "protocol.file.allow=never",
  "submodule.recurse=false",
  "credential.helper=",
  "gc.auto=0",
];

export type Git = {
  readonly remote: string;
  /** Whatever it ends with. */
  readonly run: (...args: readonly string[]) => Promise<Ran>;
  /** The same, which must end with 0. */
  readonly ok: (...args: readonly string[]) => Promise<Buffer>;
};

/** In a repository of its own, which is gone afterwards. */
export async function withGit<T>(
  access: RepoAccess,
  options: ChildOptions,
  work: (git: Git) => Promise<T>,
): Promise<T> {
  const { directory, sshConfig } = options.place;
  const repository = fs.mkdtempSync(path.join(directory, "git-"));
  const env = {
    GIT_DIR: repository,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    // By a shell.
    GIT_SSH_COMMAND: `ssh -F '${sshConfig.replaceAll("'", `'\\''`)}'`,
    GIT_SSH_VARIANT: "ssh",
    ...IDENTITY,
  };
  const settings = SETTINGS.flatMap((setting) => ["-c", setting]);
  const run: Git["run"] = (...args) => runChild(["git", ...settings, ...args], { ...options, env });
  const ok: Git["ok"] = async (...args) => {
    const ran = await run(...args);
    if (ran.code === 0) return ran.stdout;
    throw new Failure(
      "repo_unreachable",
      `git ${args[0] ?? ""} of ${accessText(access)} failed: ${lastWords(ran.stderr)}`,
    );
  };
  try {
    // An empty template: no hooks, no configuration of the machine.
    await ok("init", "--quiet", "--bare", "--template=");
    return await work({ remote: `${REPO_ALIAS}:${access.path}`, run, ok });
  } finally {
    fs.rmSync(repository, { recursive: true, force: true });
  }
}

const IDENTITY = {
  GIT_AUTHOR_NAME: "holdfast",
  GIT_AUTHOR_EMAIL: "holdfast@localhost",
  GIT_COMMITTER_NAME: "holdfast",
  GIT_COMMITTER_EMAIL: "holdfast@localhost",
};

/** The newest commit of a branch, a tag or HEAD, without its history; undefined: the repository is empty. Throws repo_missing. */
export async function fetchCommit(
  access: RepoAccess,
  ref: string,
  options: ChildOptions,
  git: Git,
): Promise<string | undefined> {
  const opened = await askService(access, "git-upload-pack", options);
  if (opened.kind === "refused")
    throw new Failure("repo_missing", `the server opens no ${accessText(access)} to this node's key: ${opened.words}`);
  if (!opened.hasRefs) return undefined;
  const fetched = await git.run(
    "fetch",
    "--quiet",
    "--depth=1",
    "--no-tags",
    "--no-recurse-submodules",
    git.remote,
    ref,
  );
  if (fetched.code !== 0 && /couldn't find remote ref/.test(fetched.stderr))
    throw new Failure("repo_missing", `${accessText(access)} has no ${ref}`);
  if (fetched.code !== 0)
    throw new Failure("repo_unreachable", `git fetch of ${accessText(access)} failed: ${lastWords(fetched.stderr)}`);
  return (await git.ok("rev-parse", "--verify", "FETCH_HEAD^{commit}")).toString("utf8").trim();
}

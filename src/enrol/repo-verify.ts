// SPDX-License-Identifier: Apache-2.0
// Proves what this node's key can do: a fetch succeeds, and a push is refused. Rule: only a server that was reached and said no
// counts as a refusal; a push that was taken is the loudest of all faults, and what it left is taken away again.

import { Failure } from "../std/errors.ts";
import type { Random } from "../std/random.ts";
import { accessText, existingAccess, type RepoAccess } from "./repo-access.ts";
import { type ChildOptions, lastWords } from "./repo-child.ts";
import { fetchCommit, type Git, withGit } from "./repo-git.ts";
import { askService } from "./repo-ssh.ts";

export type RepoVerified = {
  readonly access: RepoAccess;
  /** Null: the repository is empty. */
  readonly commit: string | null;
  /** access: the server opens nothing for writing. rule: it does, and a rule of the repository took no new branch. */
  readonly refusedBy: "access" | "rule";
  /** The server's own. */
  readonly words: string;
};

/** Throws repo_push_allowed, and what stands in the way of an answer. */
export async function verifyRepo(options: ChildOptions, random: Random): Promise<RepoVerified> {
  const access = existingAccess(options.place);
  return withGit(access, options, async (git) => {
    const commit = (await fetchCommit(access, "HEAD", options, git)) ?? null;
    const opened = await askService(access, "git-receive-pack", options);
    if (opened.kind === "refused") return { access, commit, refusedBy: "access", words: opened.words };
    return { access, commit, refusedBy: "rule", words: await tryPush(access, git, random) };
  });
}

/** Why a new branch was not taken. It is of the kind that a writer may push, else the refusal would prove nothing. */
async function tryPush(access: RepoAccess, git: Git, random: Random): Promise<string> {
  const branch = `refs/heads/holdfast-verify-${Buffer.from(random.bytes(8)).toString("hex")}`;
  const tree = (await git.ok("mktree")).toString("utf8").trim();
  const commit = (await git.ok("commit-tree", "-m", "Holdfast tests that this is refused", tree))
    .toString("utf8")
    .trim();
  const pushed = await git.run("push", "--porcelain", git.remote, `${commit}:${branch}`);
  if (pushed.code === 0) {
    const removed = await git.run("push", "--porcelain", git.remote, `:${branch}`);
    const rest =
      removed.code === 0
        ? "the branch of this test was deleted again"
        : `delete the branch ${branch} there, this test could not: ${lastWords(removed.stderr)}`;
    throw new Failure(
      "repo_push_allowed",
      `DANGER: this node's key may write to ${accessText(access)}: whoever takes over this node can change the repository; ${rest}`,
    );
  }
  const rejected = /^!\t.*\t\[remote rejected\] (.*)$/m.exec(pushed.stdout.toString("utf8"))?.[1];
  if (rejected !== undefined) return rejected.slice(0, 300);
  throw new Failure(
    "repo_unreachable",
    `whether ${accessText(access)} takes a push could not be told: ${lastWords(pushed.stderr)}`,
  );
}
